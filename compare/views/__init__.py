"""What people see: terminal, page, figures."""
