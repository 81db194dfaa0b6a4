// Package toolchain finds the compilers that turn a kernel's source into machine code (nvcc, Triton, C compilers and
// commands of the author's choice), runs them in a sandbox, and reads their cubins and reports. An untrusted source shapes all
// of that, so every read is bounded, and the whole of what is loaded is hashed. A build that could do more than a kernel may is
// refused. The package judges no figures; the gates do.
package toolchain
