package sandbox

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// nobody is the user and group that the program runs as when the caller is root.
const nobody = 65534

// identity says which user the program runs as, and which ids exist in its user namespace. Ids have
// the same value inside and outside.
type identity struct {
	// Nobody is set when the caller is root. The Linux kernel does not apply process limits to root
	// in any namespace, so the program runs as nobody. CAP_DAC_OVERRIDE lets it read root's files;
	// it reaches only files that the program can see.
	Nobody     bool
	UIDs, GIDs []syscall.SysProcIDMap
}

func currentIdentity() (identity, error) {
	uid, gid := os.Geteuid(), os.Getegid()
	single := identity{
		UIDs: []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}},
		GIDs: []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}},
	}
	if uid != 0 {
		return single, nil
	}
	uids, err := mapped("/proc/self/uid_map")
	if err != nil {
		return identity{}, err
	}
	gids, err := mapped("/proc/self/gid_map")
	if err != nil {
		return identity{}, err
	}
	if !contains(uids, nobody) || !contains(gids, nobody) {
		// In this container, root is mapped to an ordinary user outside, and is the only user.
		// Limits do apply to it.
		return single, nil
	}
	return identity{Nobody: true, UIDs: uids, GIDs: gids}, nil
}

// mapped reads the ids that exist in this process's user namespace, as a map of each id to itself.
func mapped(file string) ([]syscall.SysProcIDMap, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read the id map: %w", err)
	}
	defer f.Close()
	var ids []syscall.SysProcIDMap
	for s := bufio.NewScanner(f); s.Scan(); {
		var inside, outside, size int
		if _, err := fmt.Sscan(s.Text(), &inside, &outside, &size); err != nil {
			return nil, fmt.Errorf("read the id map %s: %w", file, err)
		}
		ids = append(ids, syscall.SysProcIDMap{ContainerID: inside, HostID: inside, Size: size})
	}
	return ids, nil
}

func contains(ids []syscall.SysProcIDMap, id int) bool {
	return slices.ContainsFunc(ids, func(m syscall.SysProcIDMap) bool { return id >= m.ContainerID && id < m.ContainerID+m.Size })
}

// userNamespace describes a child process in a new user namespace, where it holds every capability,
// and in the new namespaces that flags name.
func (id identity) userNamespace(flags uintptr) *syscall.SysProcAttr {
	caps := make([]uintptr, unix.CAP_LAST_CAP+1)
	for c := range caps {
		caps[c] = uintptr(c)
	}
	return &syscall.SysProcAttr{
		Cloneflags:                 syscall.CLONE_NEWUSER | flags,
		UidMappings:                id.UIDs,
		GidMappings:                id.GIDs,
		GidMappingsEnableSetgroups: id.Nobody,
		AmbientCaps:                caps,
		Setsid:                     true,
	}
}
