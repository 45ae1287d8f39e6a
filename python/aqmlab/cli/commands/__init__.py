"""The commands: a module each, whose name is the command's.

A module holds ``command``, a function that typer calls, or ``app``, a group of commands. Every
module in this folder is a command; there is no other list of them.
"""
