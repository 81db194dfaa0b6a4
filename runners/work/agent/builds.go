package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/bundle"
	"github.com/kernelgate/kernelgate/runners/protocol"
)

// measuring is the type of Config.Measure and Config.Build.
type measuring = func(ctx context.Context, job runners.Job, scratch string, progress runners.Progress) (runners.Measured, error)

// buildsTries is how often the runner retries to fetch builds. It does not wait for a server that
// is away for long.
const buildsTries = 2

// builds fetches the builds of the job from another host into a folder here. It returns "" if there
// are none, or if they do not match the server's description. That only costs time: the job is then
// compiled here.
func (a *agent) builds(ctx context.Context, l protocol.LeaseResponse, dir string) string {
	if l.Builds == "" || l.Stage == protocol.StageBuild {
		return ""
	}
	into, err := a.fetchBuilds(ctx, l, dir)
	if err != nil {
		a.Log.Warn("the build from another host cannot be used; compiling here", "job", l.Job, "builder", l.Builder, "error", err)
		return ""
	}
	return into
}

func (a *agent) fetchBuilds(ctx context.Context, l protocol.LeaseResponse, dir string) (string, error) {
	into := filepath.Join(dir, "builds")
	if err := os.Mkdir(into, 0o700); err != nil {
		return "", err
	}
	f, err := newDownload(filepath.Join(dir, runners.BuildsFile))
	if err != nil {
		return "", err
	}
	defer f.Close()
	for left := buildsTries; ; left-- {
		err := f.attempt(func(w io.Writer) error { return a.client.builds(ctx, l, w) })
		if err == nil {
			break
		}
		if final(err) || left == 0 || ctx.Err() != nil {
			return "", err
		}
		select {
		case <-ctx.Done():
		case <-a.After(firstPause):
		}
	}
	got, err := f.rewind()
	if err != nil {
		return "", err
	}
	if got != l.Builds {
		return "", fmt.Errorf("its digest is %.12s and should be %.12s", got, l.Builds)
	}
	return into, bundle.UnpackBuilds(f, into)
}

// builds copies the job's builds to w.
func (c *client) builds(ctx context.Context, l protocol.LeaseResponse, w io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, moveTimeout)
	defer cancel()
	resp, err := c.do(ctx, "GET", "jobs/"+l.Job+"/builds?token="+strconv.FormatUint(l.Token, 10), nil, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	n, err := io.Copy(w, io.LimitReader(resp.Body, protocol.MaxArtifact+1))
	if err == nil && n > protocol.MaxArtifact {
		return statusError{413, fmt.Sprintf("it is more than %d MiB", protocol.MaxArtifact>>20)}
	}
	return err
}

// A download is a file from the server, which may need several attempts, and its digest.
type download struct {
	*os.File
	sum hash.Hash
}

func newDownload(path string) (*download, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("creating the folder of the job: %w", err)
	}
	return &download{f, sha256.New()}, nil
}

// attempt fetches the file from the beginning.
func (d *download) attempt(fetch func(io.Writer) error) error {
	d.sum.Reset()
	if _, err := d.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := d.Truncate(0); err != nil {
		return err
	}
	return fetch(io.MultiWriter(d.File, d.sum))
}

// rewind prepares the file for reading, and returns the digest of its content.
func (d *download) rewind() (string, error) {
	_, err := d.Seek(0, io.SeekStart)
	return hex.EncodeToString(d.sum.Sum(nil)), err
}
