package gates

// A Role is what the goals of a policy ask of a shape.
type Role string

const (
	RoleTarget Role = "target" // must gain
	RoleGuard  Role = "guard"  // must not lose
	RoleInfo   Role = "info"   // decides nothing
)

// A FailureKind is how a launch failed.
type FailureKind string

const (
	FailureBuild          FailureKind = "build" // with a sanitizer
	FailureCrash          FailureKind = "crash"
	FailureExit           FailureKind = "exit"
	FailureTimeout        FailureKind = "timeout"
	FailureOutOfMemory    FailureKind = "out-of-memory"
	FailureIllegalAddress FailureKind = "illegal-address"
	FailureLaunch         FailureKind = "launch"
	FailureInputs         FailureKind = "inputs"        // it wrote to what it may only read
	FailureOutOfBounds    FailureKind = "out-of-bounds" // it wrote outside its arguments
	FailureState          FailureKind = "state"         // it depends on what an earlier launch left
	FailureRefused        FailureKind = "refused"       // it called what the sandbox does not allow
	FailureOutput         FailureKind = "output"        // a harness's results cannot be read
	FailureTool           FailureKind = "tool"          // a sanitizer's own
)
