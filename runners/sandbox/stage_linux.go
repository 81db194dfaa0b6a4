package sandbox

import (
	"encoding/gob"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// The binary runs in three parts. The caller's process starts initName in the new namespaces; that builds the
// root, starts launchName and stays as process 1; launchName takes every privilege from itself and becomes
// the program. Each part gets the config from the one before over a socket, and answers there.
const (
	initName   = "sandbox-init"
	launchName = "sandbox-launch"
)

// stageEnv is all the environment of both parts. What the binary's packages set up at its start would have its garbage
// collected twice, a third of the start's time, for parts that hardly need any memory themselves.
var stageEnv = []string{"GOMAXPROCS=1", "GOGC=off", "GOMEMLIMIT=64MiB"}

// A process that was started for the sandbox's own part does that and nothing else: it never comes to main. That this happens while
// packages are set up is for time's sake. Go sets up the packages whose imports are ready in the order of their paths, and this one imports
// little, so that what the binary is otherwise for, its regular expressions and tables, is not made ready twice for every program in a
// sandbox: that took more than half of the start's time.
func init() {
	// Not os.Exit: what a binary does there, a race detector for a second, has no place in these parts.
	switch stageName() {
	case initName:
		syscall.Exit(runInit())
	case launchName:
		syscall.Exit(runLaunch())
	}
}

func stageName() string {
	if len(os.Args) != 2 || (os.Args[0] != initName && os.Args[0] != launchName) {
		return ""
	}
	return os.Args[0]
}

// stageFile is the socket to the part before; its descriptor is the only argument.
func stageFile() (*os.File, error) {
	fd, err := strconv.Atoi(os.Args[1])
	if err != nil {
		return nil, fmt.Errorf("read the descriptor of the sandbox's socket: %w", err)
	}
	syscall.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), "sandbox socket"), nil
}

// config is what the inner parts need to know.
type config struct {
	Args, Env []string
	Dir       string
	Layout    layout
	Files     int // how many of ExtraFiles; they are descriptors 3 and up in the program
	Limits    Limits
	IDs       identity
	Calls     []Call
	Host      string
	Watch     bool
}

// report is what an inner part says. Error means that nothing was started. Otherwise the launch part
// says that it is ready, and process 1 sends an empty report when the program runs and one with Exit at its end.
type report struct {
	Error       string
	Unsupported bool // the kernel refuses this sandbox and any other
	Exit        *exitReport
}

// kernelError marks a step that only a kernel without full namespaces refuses.
type kernelError struct{ error }

func (e kernelError) Unwrap() error { return e.error }

type exitReport struct {
	Status      syscall.WaitStatus
	OutOfMemory bool
	Refused     []string
	Lookups     []string
	LookupsCut  bool
}

// socketpair returns two connected files, closed on exec. The near one can be closed under a blocked read.
func socketpair() (near, far *os.File, err error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make a socket pair: %w", err)
	}
	if err := syscall.SetNonblock(fds[0], true); err != nil {
		return nil, nil, fmt.Errorf("make a socket pair: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "sandbox socket"), os.NewFile(uintptr(fds[1]), "sandbox socket"), nil
}

// send writes one report. A reader that is gone has already drawn its conclusion, so the error is dropped.
func send(replies *gob.Encoder, r report) { _ = replies.Encode(r) }
