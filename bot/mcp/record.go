package mcp

import _ "embed"

// RecordHelper is the Python module that stores the tensors of a call. It needs no other file.
//
//go:embed python/src/kernelgate/record.py
var RecordHelper []byte
