package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A layout describes the contents of the new root. All paths except the targets of links are
// absolute and free of symbolic links, so that no link can redirect the code that builds the root.
type layout struct {
	Mounts []mountAt
	Links  []link
}

// devices reports whether the program may use devices that the caller chose. Such a program also
// needs what their drivers need.
func (l layout) devices() bool {
	return slices.ContainsFunc(l.Mounts, func(m mountAt) bool { return m.Kind == device })
}

type mountKind int

const (
	readOnly mountKind = iota
	scratch            // a private copy of a Write path
	empty              // a folder of the program's own, which ends with it
	device
)

func (k mountKind) String() string { return [...]string{"read", "write", "empty", "device"}[k] }

type mountAt struct {
	Path string
	From string // path on the host; "" means the same path
	Kind mountKind
	Dir  bool
}

type link struct{ Path, Target string }

// plan resolves the Spec's paths on the host. It recreates inside the symbolic links on the way to
// a path, so that the program finds the path under the name that the caller gave.
func plan(s Spec) (layout, error) {
	var l layout
	for kind, paths := range map[mountKind][]string{readOnly: s.Read, scratch: s.Write, device: s.Devices} {
		for _, p := range paths {
			if err := l.add(kind, p); err != nil {
				return layout{}, fmt.Errorf("%s path %s: %w", kind, p, err)
			}
		}
	}
	for _, p := range s.Places {
		if err := l.place(p); err != nil {
			return layout{}, fmt.Errorf("%s at %s: %w", p.Host, p.Inside, err)
		}
	}
	// A parent comes before the paths below it. Of two mounts at one path, keep the more
	// permissive.
	slices.SortFunc(l.Mounts, func(a, b mountAt) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), cmp.Compare(b.Kind, a.Kind))
	})
	l.Mounts = slices.CompactFunc(l.Mounts, func(a, b mountAt) bool { return a.Path == b.Path })
	return l, nil
}

func (l *layout) add(kind mountKind, path string) error {
	if !filepath.IsAbs(path) {
		return errors.New("not absolute")
	}
	real, links, err := resolve(filepath.Clean(path))
	if err != nil {
		return err
	}
	l.Links = append(l.Links, links...)
	info, err := os.Lstat(real)
	if err != nil {
		return err
	}
	switch {
	case real == "/":
		return errors.New("would show the whole host; name the directories that are needed")
	case real == "/tmp" || Within(real, "/proc") || (kind != device && Within(real, "/dev")):
		return errors.New("the sandbox has a /tmp, a /proc and a /dev of its own")
	case kind == scratch && !info.IsDir():
		return errors.New("not a directory")
	case kind == device && info.Mode()&os.ModeDevice == 0:
		return errors.New("not a device")
	}
	l.Mounts = append(l.Mounts, mountAt{Path: real, Kind: kind, Dir: info.IsDir()})
	return nil
}

// place shows a path of the host at a different path. Below /tmp this works only where the place
// covers a part of a Read path.
func (l *layout) place(p Place) error {
	if !filepath.IsAbs(p.Inside) || filepath.Clean(p.Inside) != p.Inside || !filepath.IsAbs(p.Host) && p.Host != "" {
		return errors.New("not absolute, or not clean")
	}
	covers := slices.ContainsFunc(l.Mounts, func(m mountAt) bool {
		return m.Kind == readOnly && m.From == "" && p.Inside != m.Path && Within(p.Inside, m.Path)
	})
	for _, own := range []string{"/tmp", "/proc", "/dev", "/"} {
		if p.Inside == own || own != "/" && Within(p.Inside, own) && !covers {
			return fmt.Errorf("the sandbox has a %s of its own", own)
		}
	}
	if p.Host == "" {
		l.Mounts = append(l.Mounts, mountAt{Path: p.Inside, Kind: empty, Dir: true})
		return nil
	}
	real, err := filepath.EvalSymlinks(p.Host)
	if err != nil {
		return err
	}
	info, err := os.Lstat(real)
	if err != nil {
		return err
	}
	kind := readOnly
	if p.Write {
		if kind = scratch; !info.IsDir() {
			return errors.New("not a directory")
		}
	}
	l.Mounts = append(l.Mounts, mountAt{Path: p.Inside, From: real, Kind: kind, Dir: info.IsDir()})
	return nil
}

// resolve follows the symbolic links in a clean absolute path, and returns the links that it
// followed.
func resolve(path string) (real string, links []link, err error) {
	real, rest := "/", strings.Split(strings.Trim(path, "/"), "/")
	for len(rest) > 0 {
		next := filepath.Join(real, rest[0])
		rest = rest[1:]
		info, err := os.Lstat(next)
		if err != nil {
			return "", nil, err
		}
		if info.Mode()&os.ModeSymlink == 0 {
			real = next
			continue
		}
		target, err := os.Readlink(next)
		if err != nil {
			return "", nil, err
		}
		if links = append(links, link{next, target}); len(links) > 40 {
			return "", nil, errors.New("too many symbolic links")
		}
		if filepath.IsAbs(target) {
			real = "/"
		}
		rest = append(strings.Split(strings.Trim(filepath.Clean(target), "/"), "/"), rest...)
	}
	return real, links, nil
}

// Within reports whether path is dir or lies below it. Both must be clean.
func Within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// SystemPaths returns the paths that a C or CUDA compiler and a dynamically linked program need to
// read, as far as they exist on this host. The list has no account data, no home directory and no
// configuration except the linker's.
func SystemPaths() []string {
	candidates := []string{
		"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store",
		"/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
	}
	return slices.DeleteFunc(candidates, func(p string) bool {
		_, err := os.Stat(p)
		return err != nil
	})
}
