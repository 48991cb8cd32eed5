"""Ctrl-C reaches the programs under test, where a shell started the tests in the background and ignores it, too."""

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
