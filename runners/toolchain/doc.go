// Package toolchain knows the compilers that turn a kernel's source into machine code, and reads what they and CUDA's
// binary tools print and write: resource usage, globals, diagnostics, object files and cubins. A stranger's source had a hand in
// all of it. What is read is bounded and believed in nothing; what could do more than a kernel may is refused as the source's fault,
// and what is loaded is hashed as a whole. It judges nothing: which figure is too high is for the gates to say.
package toolchain
