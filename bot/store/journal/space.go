package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/nats-io/nats-server/v2/server"
)

// spare is the part of its disk that the embedded server leaves free, as a divisor.
const spare = 20

// storeLimit returns how many bytes the embedded server may store: its current size plus the free
// space, less a twentieth of the disk. The server's default is three quarters of the space that is
// free at its start, regardless of what it stores already.
func storeLimit(dir string) (int64, error) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return 0, fmt.Errorf("open journal %s: ask how full its disk is: %w", dir, err)
	}
	used := int64(0)
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			used += info.Size()
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("open journal %s: ask how much it holds: %w", dir, err)
	}
	block := int64(disk.Bsize)
	// A full disk should show as a failed write, not as a server that does not start.
	return used + max(int64(disk.Bavail)*block-int64(disk.Blocks)*block/spare, block), nil
}

// Space is how much a NATS server stores, and how much it may store.
type Space struct {
	Server      string // host and port of its monitor; "embedded"
	Used, Limit uint64 // bytes
	Err         error  // why the rest is unknown
}

// Space returns how full the journal is: the embedded server, or the servers that Options.Monitors
// names.
func (j *Journal) Space(ctx context.Context) []Space {
	if j.srv != nil {
		is, err := j.srv.Jsz(nil)
		if err != nil {
			return []Space{{Server: "embedded", Err: err}}
		}
		return []Space{{Server: "embedded", Used: is.Store, Limit: uint64(is.Config.MaxStore)}}
	}
	answers := make(chan Space)
	for _, address := range j.opt.Monitors {
		go func() { answers <- askMonitor(ctx, address) }()
	}
	var all []Space
	for range j.opt.Monitors {
		all = append(all, <-answers)
	}
	return all
}

func askMonitor(ctx context.Context, address string) Space {
	ctx, cancel := context.WithTimeout(ctx, healthWithin/2)
	defer cancel()
	s := Space{Server: address}
	if u, err := url.Parse(address); err == nil && u.Host != "" {
		s.Server = u.Host
	}
	var is server.JSInfo
	s.Err = func() error {
		rq, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(address, "/")+"/jsz", nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(rq)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("the monitor answers %s", resp.Status)
		}
		if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&is); err != nil {
			return err
		}
		if is.Disabled { // as after its disk was full
			return errors.New("JetStream is off")
		}
		return nil
	}()
	if s.Err == nil {
		s.Used, s.Limit = is.Store, uint64(is.Config.MaxStore)
	}
	return s
}
