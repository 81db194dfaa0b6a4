// Package kernels holds the kernels that come with the program.
package kernels

import "embed"

// Shipped has one folder for each kernel that needs no GPU.
//
//go:embed sdpa_cpu
var Shipped embed.FS
