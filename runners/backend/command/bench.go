package command

import _ "embed"

// BenchScript is kernelgate_bench.py, which harnesses in Python copy beside their kernel.
//
//go:embed kernelgate_bench.py
var BenchScript string
