// Package toolchain knows the compilers that turn a kernel's source into machine code, and reads what they and CUDA's
// binary tools print about it: resource usage, globals and diagnostics. It judges nothing: which figure is too
// high is for the gates to say.
package toolchain
