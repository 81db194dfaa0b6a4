package sandbox

// A Call is a system call that a program may make. Where it says something of its arguments, all of
// it must hold; one that is listed twice may be made either way.
type Call struct {
	Number uintptr
	When   []Argument
	Absent bool // it is answered as if the system had no such call, so that a library tries another
}

// An Argument is what one argument of a call must be: Value in the bits under Mask.
type Argument struct {
	Index       int
	Mask, Value uint64
}
