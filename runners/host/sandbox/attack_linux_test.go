package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// secret is the text that the tests hide and the attacks look for.
const secret = "the-key-that-nobody-may-see"

// attack makes one attempt inside the sandbox and prints the outcome. Its exit code is 0 if the
// attempt was refused.
func attack(name string, args []string) int {
	try, ok := attacks[name]
	if !ok {
		fmt.Println("no such attack:", name)
		return 2
	}
	if err := try(args); err != nil {
		fmt.Println("refused:", err)
		return 0
	}
	fmt.Println("BREACH:", name)
	return 1
}

// nextAttempt separates the outputs of attackInTurn's attempts.
const nextAttempt = "---- the next attempt\n"

// attackInTurn makes several attempts. An empty argument ends the arguments of each. Its exit code
// is 0 if all attempts were refused.
func attackInTurn(args []string) int {
	code := 0
	for len(args) > 0 {
		end := slices.Index(args, "")
		code = max(code, attack(args[0], args[1:end]))
		fmt.Print(nextAttempt)
		args = args[end+1:]
	}
	return code
}

// attacks return the error that stopped them, or nil if they succeeded.
var attacks = map[string]func(args []string) error{
	"read":        func(a []string) error { _, err := os.ReadFile(a[0]); return err },
	"list":        func(a []string) error { _, err := os.ReadDir(a[0]); return err },
	"write":       func(a []string) error { return os.WriteFile(a[0], []byte("x"), 0o644) },
	"open device": func(a []string) error { return closeAfter(os.OpenFile(a[0], os.O_RDWR, 0)) },
	"mknod":       func([]string) error { return unix.Mknod("/tmp/null", unix.S_IFCHR|0o666, 1<<8|3) },
	"environment": func([]string) error {
		if env := os.Environ(); len(env) > 0 {
			return nil
		}
		return errors.New("the environment is empty")
	},
	"descriptors": readDescriptors,
	"reopen":      func([]string) error { return closeAfter(os.OpenFile("/proc/self/fd/3", os.O_WRONLY, 0)) },

	"connect": func(a []string) error { return closeAfter(net.Dial("tcp", a[0])) },
	"vsock": func([]string) error {
		_, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)
		return err
	},

	"memfd":         func([]string) error { _, err := unix.MemfdCreate("x", 0); return err },
	"fork":          forkWithoutEnd,
	"fill":          fillFile,
	"fill by files": fillManyFiles,
	"allocate":      allocateWithoutEnd,
	"allocate apart": func([]string) error {
		return allocateInChildren(unix.MAP_PRIVATE)
	},
	"allocate shared": func([]string) error {
		return allocateInChildren(unix.MAP_SHARED)
	},
	"print": func([]string) error {
		for line := bytes.Repeat([]byte("spam\n"), 1000); ; {
			if _, err := os.Stdout.Write(line); err != nil {
				return err
			}
		}
	},
	"wait": func([]string) error {
		for {
			time.Sleep(time.Hour)
		}
	},
	"outlive": outlive,
	"daemon":  daemon,

	"signal": func(a []string) error {
		pid, err := strconv.Atoi(a[0])
		if err != nil {
			return nil
		}
		return unix.Kill(pid, unix.SIGTERM)
	},
	"ptrace": func(a []string) error {
		pid, err := strconv.Atoi(a[0])
		if err != nil {
			return nil
		}
		return unix.PtraceAttach(pid)
	},
	"mount":   func([]string) error { return unix.Mount("none", "/tmp", "tmpfs", 0, "") },
	"unmount": func(a []string) error { return unix.Unmount(a[0], unix.MNT_DETACH) },
	"remount": func(a []string) error { return unix.Mount("", a[0], "", unix.MS_REMOUNT|unix.MS_BIND, "") },
	"unshare": func([]string) error { return unix.Unshare(unix.CLONE_NEWUSER) },
	"raise": func([]string) error {
		return unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: 1 << 20, Max: 1 << 20})
	},
	"become 0": func([]string) error { _, _, e := unix.RawSyscall(unix.SYS_SETUID, 0, 0, 0); return orNil(e) },
	"new user namespace": func([]string) error {
		_, err := os.StartProcess("/proc/self/exe", []string{"x"}, &os.ProcAttr{Sys: &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}})
		return err
	},
	"capability": holdsCapability,

	// The next two are not attacks. This one runs where the kernel refuses a sandbox.
	"nest": func([]string) error {
		_, err := Run(context.Background(), Spec{Args: []string{"true"}, Read: SystemPaths()})
		if !errors.Is(err, ErrUnsupported) {
			fmt.Println(err)
			return nil
		}
		return err
	},
	// This one communicates over shared memory.
	"share": func([]string) error {
		mem, err := unix.Mmap(3, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			return nil
		}
		fmt.Printf("%s\n", mem[:12])
		copy(mem, "from inside")
		return errors.New("wrote an answer")
	},
}

func orNil(e unix.Errno) error {
	if e == 0 {
		return nil
	}
	return e
}

func closeAfter[C interface{ Close() error }](c C, err error) error {
	if err == nil {
		c.Close()
	}
	return err
}

// readDescriptors looks for the secret in every descriptor that the process could have inherited.
func readDescriptors([]string) error {
	for fd := 3; fd < 1024; fd++ {
		buf := make([]byte, 100)
		if n, err := unix.Pread(fd, buf, 0); err == nil && bytes.Contains(buf[:n], []byte(secret)) {
			return nil
		}
	}
	return errors.New("no descriptor leads to it")
}

// forkWithoutEnd makes children that wait until they are killed. The children make raw system calls
// only, because they have no Go runtime.
func forkWithoutEnd(a []string) error {
	limit, err := strconv.Atoi(a[0])
	if err != nil {
		return nil
	}
	for n := range 10 * limit {
		pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		switch {
		case errno != 0:
			time.Sleep(time.Second) // let the watch see it
			return fmt.Errorf("fork %d: %w", n+1, errno)
		case pid == 0:
			for {
				unix.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
			}
		}
	}
	return nil
}

// fillFile writes one file of 64 MiB, and unlinks it if asked to.
func fillFile(a []string) error {
	signal.Ignore(unix.SIGXFSZ) // to get the error that the signal would hide
	f, err := os.Create(filepath.Join(a[0], "file"))
	if err != nil {
		return err
	}
	if len(a) > 1 {
		if err := os.Remove(f.Name()); err != nil {
			return err
		}
	}
	return fill(f, 64<<20)
}

func fillManyFiles(a []string) error {
	for i := range 64 {
		f, err := os.Create(filepath.Join(a[0], fmt.Sprint(i)))
		if err != nil {
			return err
		}
		if err := fill(f, 1<<20); err != nil {
			return err
		}
	}
	return nil
}

func fill(f *os.File, size int) error {
	block := bytes.Repeat([]byte{1}, 1<<16)
	for range size / len(block) {
		if _, err := f.Write(block); err != nil {
			return err
		}
	}
	return nil
}

const enoughMemory = 2 << 30

func allocateWithoutEnd([]string) error {
	for range enoughMemory >> 24 {
		b, err := unix.Mmap(-1, 0, 1<<24, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			return fmt.Errorf("allocate: %w", err)
		}
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
	}
	return nil
}

// allocateInChildren makes each of many children hold a little memory, by reading zeroes into a
// mapping.
func allocateInChildren(how int) error {
	zero, err := unix.Open("/dev/zero", unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	const each = 1 << 25
	for range enoughMemory / each {
		b, err := unix.Mmap(-1, 0, each, unix.PROT_READ|unix.PROT_WRITE, how|unix.MAP_ANON)
		if err != nil {
			return err
		}
		addr := uintptr(unsafe.Pointer(&b[0]))
		pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		if errno != 0 {
			return errno
		}
		if pid == 0 {
			unix.RawSyscall(unix.SYS_READ, uintptr(zero), addr, each)
			for {
				unix.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
			}
		}
		if err := unix.Munmap(b); err != nil {
			return err
		}
	}
	for {
		time.Sleep(time.Hour)
	}
}

// outlive starts a daemon in a new session, and then ends at once or waits for the deadline.
func outlive(a []string) error {
	r, w, err := os.Pipe()
	if err != nil {
		return nil
	}
	_, err = os.StartProcess("/proc/self/exe", []string{"x", "attack", "daemon"}, &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr, os.NewFile(3, "out"), w},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		fmt.Println(err)
		return nil
	}
	if _, err := r.Read(make([]byte, 1)); err != nil {
		fmt.Println(err)
		return nil
	}
	if a[0] == "exit" {
		return errors.New("left a daemon behind")
	}
	for {
		time.Sleep(time.Hour)
	}
}

// daemon writes to descriptor 3 that it runs, notifies its parent on descriptor 4, and ignores
// every signal that can be ignored.
func daemon([]string) error {
	signal.Ignore(unix.SIGTERM, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT)
	for fd := range 2 {
		if _, err := os.NewFile(uintptr(3+fd), "out").WriteString("a"); err != nil {
			return nil
		}
	}
	for {
		time.Sleep(time.Hour)
	}
}

func holdsCapability([]string) error {
	var sets [2]unix.CapUserData
	if err := unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &sets[0]); err != nil {
		return nil
	}
	allowed := uint32(1 << unix.CAP_DAC_OVERRIDE) // for nobody, when the caller is root
	if sets[0].Permitted&^allowed != 0 || sets[1].Permitted != 0 {
		return nil
	}
	return fmt.Errorf("capabilities are %#x", sets[0].Permitted)
}
