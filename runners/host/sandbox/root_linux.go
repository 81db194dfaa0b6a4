package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// stagingDir is where the new root is mounted while it is built. The mount hides the host's files
// there, but every path below it was opened before.
const stagingDir = "/tmp"

var standardDevices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// newRoot is the state that process 1 keeps about the root that it built.
type newRoot struct {
	scratch *os.File // the one file system that the program can write to
	copies  []privateCopy
	empty   int // empty folders
}

// isolate disconnects the new namespaces from the host's and mounts a new /proc. That /proc shows
// only the namespaces' own processes and no kernel settings, and it hides process 1 from the
// program.
func isolate(host string) error {
	if err := unix.Sethostname([]byte(host)); err != nil {
		return kernelError{fmt.Errorf("set the host name: %w", err)}
	}
	// The one namespace is for the program. The limit covers everything below this user namespace.
	if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("1"), 0); err != nil {
		return kernelError{fmt.Errorf("forbid further user namespaces: %w", err)}
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return kernelError{fmt.Errorf("make the mounts private: %w", err)}
	}
	err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "hidepid=invisible,subset=pid")
	if err != nil {
		return kernelError{fmt.Errorf("mount /proc (a container that masks parts of its own forbids it): %w", err)}
	}
	return nil
}

// buildRoot builds the root from the layout, but does not enter it.
func (c *config) buildRoot() (*newRoot, error) {
	mounts := slices.Clone(c.Layout.Mounts)
	for _, d := range standardDevices {
		mounts = append(mounts, mountAt{Path: d, Kind: device})
	}
	sources, err := takeSources(mounts)
	if err != nil {
		return nil, err
	}
	if err := tmpfs(stagingDir, 1<<20, 0o755); err != nil {
		return nil, err
	}
	root := &newRoot{}
	if err := root.makeScratch(c); err != nil {
		return nil, err
	}
	for i, m := range mounts {
		if err := root.attach(c, m, sources[i]); err != nil {
			return nil, fmt.Errorf("bind %s: %w", m.Path, err)
		}
	}
	if err := makeLinks(c.Layout.Links); err != nil {
		return nil, err
	}
	return root, nil
}

// A source is the host's side of a mount: a detached copy of the mount, or the directory to copy.
type source struct {
	tree int
	dir  *os.Root
}

func takeSources(mounts []mountAt) ([]source, error) {
	sources := make([]source, len(mounts))
	for i, m := range mounts {
		var err error
		switch m.Kind {
		case empty:
		case scratch:
			sources[i].dir, err = os.OpenRoot(cmp.Or(m.From, m.Path))
		default:
			sources[i].tree, err = cloneMount(m)
		}
		if err != nil {
			return nil, fmt.Errorf("take %s from the host: %w", m.Path, err)
		}
	}
	return sources, nil
}

func cloneMount(m mountAt) (fd int, err error) {
	fd, err = unix.OpenTree(unix.AT_FDCWD, cmp.Or(m.From, m.Path), unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return -1, err
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_RDONLY}
	if m.Kind == device {
		attr.Attr_set = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC
	}
	return fd, unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr)
}

func tmpfs(at string, size int64, mode os.FileMode) error {
	// An inode uses kernel memory that the size limit does not count.
	inodes := min(1024+size>>12, 1<<18)
	data := fmt.Sprintf("size=%d,nr_inodes=%d,mode=%o", size, inodes, mode)
	if err := unix.Mount("sandbox", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, data); err != nil {
		return kernelError{fmt.Errorf("mount a tmpfs on %s: %w", at, err)}
	}
	return nil
}

// makeScratch mounts the only writable file system at a hidden path and shows a part of it as /tmp.
func (r *newRoot) makeScratch(c *config) error {
	at := filepath.Join(stagingDir, ".scratch")
	if err := os.Mkdir(at, 0o700); err != nil {
		return fmt.Errorf("make the scratch directory: %w", err)
	}
	if err := tmpfs(at, c.Limits.Disk, 0o755); err != nil {
		return err
	}
	var err error
	if r.scratch, err = os.Open(at); err != nil {
		return fmt.Errorf("open the scratch directory: %w", err)
	}
	if _, err := r.show("tmp", "/tmp", c); err != nil {
		return fmt.Errorf("make /tmp: %w", err)
	}
	return nil
}

// show makes a directory of the scratch file system that belongs to the program, and binds it to a
// path.
func (r *newRoot) show(name, path string, c *config) (dir string, err error) {
	dir = filepath.Join(r.scratch.Name(), name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	if c.IDs.Nobody {
		if err := os.Chown(dir, nobody, nobody); err != nil {
			return "", err
		}
	}
	at := filepath.Join(stagingDir, path)
	if err := os.MkdirAll(at, 0o755); err != nil {
		return "", err
	}
	return dir, unix.Mount(dir, at, "", unix.MS_BIND, "")
}

func (r *newRoot) attach(c *config, m mountAt, s source) error {
	if m.Kind == empty {
		r.empty++
		_, err := r.show(fmt.Sprint("empty", r.empty), m.Path, c)
		return err
	}
	if m.Kind == scratch {
		dir, err := r.show(fmt.Sprint("write", len(r.copies)), m.Path, c)
		if err != nil {
			return err
		}
		inside, err := os.OpenRoot(dir)
		if err != nil {
			return err
		}
		p := privateCopy{path: m.Path, host: s.dir, inside: inside}
		r.copies = append(r.copies, p)
		return p.fill(c.IDs.Nobody)
	}
	defer unix.Close(s.tree)
	at := filepath.Join(stagingDir, m.Path)
	if err := mountPoint(at, m.Dir); err != nil {
		return err
	}
	return unix.MoveMount(s.tree, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// mountPoint makes an empty file or directory to mount on, unless an earlier mount already shows
// one.
func mountPoint(at string, dir bool) error {
	if _, err := os.Lstat(at); err == nil {
		return nil
	}
	if dir {
		return os.MkdirAll(at, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	return os.WriteFile(at, nil, 0o644)
}

func makeLinks(links []link) error {
	links = append(slices.Clone(links),
		link{"/dev/shm", "/tmp"}, // named shared memory counts as disk
		link{"/dev/fd", "/proc/self/fd"}, link{"/dev/stdin", "fd/0"}, link{"/dev/stdout", "fd/1"}, link{"/dev/stderr", "fd/2"},
	)
	slices.SortFunc(links, func(a, b link) int { return cmp.Compare(strings.Count(a.Path, "/"), strings.Count(b.Path, "/")) })
	for _, l := range links {
		at := filepath.Join(stagingDir, l.Path)
		if _, err := os.Lstat(at); err == nil {
			continue // shown by a mount, or listed twice
		}
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return fmt.Errorf("link %s: %w", l.Path, err)
		}
		if err := os.Symlink(l.Target, at); err != nil {
			return fmt.Errorf("link %s: %w", l.Path, err)
		}
	}
	return nil
}

// enter makes the staging directory the root and unmounts the host's root. The kernel moves the
// launch part along, because it shares the mounts.
func enter() error {
	proc := filepath.Join(stagingDir, "proc")
	if err := os.Mkdir(proc, 0o755); err != nil {
		return fmt.Errorf("make /proc: %w", err)
	}
	if err := unix.Mount("/proc", proc, "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("move /proc: %w", err)
	}
	at := filepath.Join(stagingDir, ".scratch")
	err := errors.Join(unix.Unmount(at, unix.MNT_DETACH), os.Remove(at))
	if err != nil {
		return fmt.Errorf("hide the scratch directory: %w", err)
	}
	if err := unix.Chdir(stagingDir); err != nil {
		return fmt.Errorf("enter the new root: %w", err)
	}
	// With both arguments equal, the old root ends up on top of the new one, ready to be unmounted.
	if err := unix.PivotRoot(".", "."); err != nil {
		return kernelError{fmt.Errorf("change to the new root: %w", err)}
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("drop the host's root: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return fmt.Errorf("enter the new root: %w", err)
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", 0, &attr); err != nil {
		return fmt.Errorf("make the root read-only: %w", err)
	}
	return nil
}

// full reports whether the program has used up its disk.
func (r *newRoot) full() bool {
	var s unix.Statfs_t
	return unix.Fstatfs(int(r.scratch.Fd()), &s) == nil && (s.Bfree == 0 || s.Ffree == 0)
}
