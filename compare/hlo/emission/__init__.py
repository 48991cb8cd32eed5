"""How the compiler emits a collective: in which form, with which payload, within or between slices."""
