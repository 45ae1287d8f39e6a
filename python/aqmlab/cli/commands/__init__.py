"""The commands: a module each, whose name is the command's.

A module holds ``command``, a function whose parameters are the command's arguments and options, as
:mod:`aqmlab.cli.build` says. A group of commands has ``COMMANDS``, too: their functions by name.
Every module in this folder is a command; there is no other list of them.
"""
