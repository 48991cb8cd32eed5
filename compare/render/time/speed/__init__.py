"""Where the time of a step goes: the longest operations, reasons, floors."""
