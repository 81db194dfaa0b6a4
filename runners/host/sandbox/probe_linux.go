package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ErrUnsupported means that this host's kernel or its configuration refuses the sandbox. The error
// that wraps it says what to do.
var ErrUnsupported = errors.New("the sandbox is not supported here")

// Support says what a host allows.
type Support struct {
	Checks   []Check
	Landlock int // the kernel's Landlock version, 0 for none
}

// A Check is one feature that the sandbox relies on.
type Check struct {
	Name   string
	OK     bool
	Needed bool   // Start fails without it
	Detail string // what was found
	Remedy string // what to do if it is not OK
}

// Works reports whether Start can work on this host.
func (s Support) Works() bool {
	return !slices.ContainsFunc(s.Checks, func(c Check) bool { return c.Needed && !c.OK })
}

// Probe determines what this host allows, by building a sandbox that runs nothing.
func Probe() Support {
	s := Support{Landlock: landlockABI()}

	began := time.Now()
	build := Check{Name: "sandbox", OK: true, Needed: true}
	if p, err := start(context.Background(), Spec{}); err != nil {
		build.OK, build.Detail, build.Remedy = false, err.Error(), remedy()
	} else {
		r, err := p.Wait()
		build.Detail = fmt.Sprintf("built and ended in %v", time.Since(began).Round(time.Millisecond))
		if err != nil || !r.OK() {
			build.OK, build.Detail, build.Remedy = false, fmt.Sprintf("ended with %+v, %v", r, err), remedy()
		}
	}

	landlock := Check{Name: "landlock", OK: s.Landlock > 0, Detail: fmt.Sprintf("version %d", s.Landlock)}
	if !landlock.OK {
		landlock.Detail = "not in this kernel"
		landlock.Remedy = "run Linux 5.13 or later with landlock in the lsm= list of the kernel's command line"
	}
	_, known := auditArch[runtime.GOARCH]
	filter := Check{Name: "system-call filter", OK: known, Needed: true, Detail: runtime.GOARCH}
	if !known {
		filter.Remedy = "use amd64 or arm64"
	}
	s.Checks = []Check{build, landlock, filter}
	return s
}

// unsupported wraps an error with what the kernel refused and what to do.
func unsupported(err error) error {
	return fmt.Errorf("%w: %w; %s", ErrUnsupported, err, remedy())
}

// refusedByKernel distinguishes a refusal from a temporary shortage. ENOSPC counts as a refusal: it
// means that the limit on namespaces is reached.
func refusedByKernel(err error) bool {
	return slices.ContainsFunc([]error{unix.EPERM, unix.EACCES, unix.EROFS, unix.EINVAL, unix.ENOSYS, unix.ENODEV, unix.ENOSPC, unix.EUSERS},
		func(refusal error) bool { return errors.Is(err, refusal) })
}

// remedy guesses from the host's settings what prevents the sandbox.
func remedy() string {
	setting := func(name string) string {
		b, err := os.ReadFile("/proc/sys/" + strings.ReplaceAll(name, ".", "/"))
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(b))
	}
	switch {
	case setting("user.max_user_namespaces") == "0":
		return "allow user namespaces: sysctl -w user.max_user_namespaces=10000"
	case setting("kernel.unprivileged_userns_clone") == "0" && os.Geteuid() != 0:
		return "allow user namespaces: sysctl -w kernel.unprivileged_userns_clone=1"
	case setting("kernel.apparmor_restrict_unprivileged_userns") == "1" && os.Geteuid() != 0:
		return "allow user namespaces: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or give this binary an AppArmor profile with userns"
	case underFilter():
		return "something around this process, perhaps a container, filters its system calls: run outside it, " +
			"or start it with --security-opt seccomp=unconfined --security-opt systempaths=unconfined"
	}
	return "run on Linux 5.14 or later with user namespaces, outside a container or in one that allows them"
}

func underFilter() bool {
	b, err := os.ReadFile("/proc/self/status")
	return err == nil && strings.Contains(string(b), "\nSeccomp:\t2")
}
