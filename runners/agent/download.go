package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
)

// A download is a file that comes from the server, perhaps not at the first attempt, and its digest.
type download struct {
	*os.File
	sum hash.Hash
}

func newDownload(path string) (*download, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("making room for the job: %w", err)
	}
	return &download{f, sha256.New()}, nil
}

// attempt fetches it from the beginning.
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

// rewind makes it ready to be read, and returns the digest of all that came.
func (d *download) rewind() (string, error) {
	_, err := d.Seek(0, io.SeekStart)
	return hex.EncodeToString(d.sum.Sum(nil)), err
}
