"""What every package uses: files, tables of TOML, expressions, threads, the terminal."""
