package agent

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/protocol"
)

// A store keeps finished results on disk until they are delivered.
type store struct {
	work    string // the running job; emptied at every start
	results string
}

// openStore locks dir for this runner as long as the returned file is open.
func openStore(dir string) (store, *os.File, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return store{}, nil, err
	}
	s := store{work: filepath.Join(dir, "work"), results: filepath.Join(dir, "results")}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return s, nil, fmt.Errorf("creating the state folder: %w (choose one that this user may write)", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "LOCK"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return s, nil, fmt.Errorf("opening the state folder: %w (choose one that this user may write)", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return s, nil, errors.Join(fmt.Errorf("another runner uses the state folder %s: give each runner a separate one", dir), lock.Close())
	}
	// The sandbox's programs read jobs as a different user.
	err = errors.Join(os.RemoveAll(s.work), os.MkdirAll(s.work, 0o755), os.Chmod(s.work, 0o755), os.MkdirAll(s.results, 0o700))
	if err == nil {
		err = s.tidy()
	}
	if err != nil {
		return s, nil, errors.Join(fmt.Errorf("preparing the state folder: %w", err), lock.Close())
	}
	return s, lock, nil
}

// unfinished marks results that were not completely written.
const unfinished = ".part-"

func (s store) tidy() error {
	parts, err := filepath.Glob(filepath.Join(s.results, unfinished+"*"))
	for _, part := range parts {
		err = errors.Join(err, os.RemoveAll(part))
	}
	return err
}

// A storedResult is a folder with the Result and its artifacts.
type storedResult struct {
	dir   string
	job   string
	token uint64
}

const (
	resultFile      = "result.json.gz"
	artifactsFolder = "artifacts"
)

// keep writes a result to disk. It appears under its name only when it is complete.
func (s store) keep(l protocol.LeaseResponse, found runners.Measured) (storedResult, error) {
	k := storedResult{dir: filepath.Join(s.results, fmt.Sprintf("%d-%s", l.Token, l.Job)), job: l.Job, token: l.Token}
	part, err := os.MkdirTemp(s.results, unfinished)
	if err != nil {
		return k, err
	}
	defer os.RemoveAll(part)
	evidence, err := json.Marshal(found.Evidence)
	if err != nil {
		return k, err
	}
	r := protocol.Result{Token: l.Token, Evidence: evidence, Log: found.BuildLog, Open: found.Open}
	folder := filepath.Join(part, artifactsFolder)
	if err := os.Mkdir(folder, 0o700); err != nil {
		return k, err
	}
	for i, file := range found.Artifacts {
		why := fmt.Sprintf("a run keeps %d artifacts", protocol.MaxArtifacts)
		if i < protocol.MaxArtifacts {
			if why, err = copyArtifact(file, folder); err != nil {
				return k, err
			}
		}
		if why != "" {
			r.Log += fmt.Sprintf("\n%s was not kept: %s\n", filepath.Base(file), why)
		}
	}
	r.Log = shorten(r.Log)
	if err := (storedResult{dir: part}).write(r); err != nil {
		return k, err
	}
	return k, errors.Join(os.RemoveAll(k.dir), os.Rename(part, k.dir))
}

// copyArtifact returns why it left a file out. An error is a fault of this host.
func copyArtifact(file, folder string) (why string, err error) {
	name := filepath.Base(file)
	info, err := os.Lstat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "it is not there", nil
	case err != nil:
		return "", err
	case !protocol.ArtifactName(name) || !info.Mode().IsRegular():
		return "it is not a regular file with a plain name", nil
	case info.Size() > protocol.MaxArtifact:
		return fmt.Sprintf("it is %d MiB long, and at most %d MiB are accepted", info.Size()>>20, protocol.MaxArtifact>>20), nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	return "", os.WriteFile(filepath.Join(folder, name), data, 0o600)
}

// shorten keeps a log's beginning and end.
func shorten(log string) string {
	if len(log) <= protocol.MaxLog {
		return log
	}
	const half = protocol.MaxLog/2 - 100
	left := fmt.Sprintf("\n… %d bytes are left out …\n", len(log)-2*half)
	return strings.ToValidUTF8(log[:half], "") + left + strings.ToValidUTF8(log[len(log)-half:], "")
}

func (k storedResult) write(r protocol.Result) error {
	f, err := os.OpenFile(filepath.Join(k.dir, resultFile), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	zip := gzip.NewWriter(f)
	err = json.NewEncoder(zip).Encode(r)
	return errors.Join(err, zip.Close(), f.Sync(), f.Close())
}

func (k storedResult) read() (r protocol.Result, err error) {
	f, err := os.Open(filepath.Join(k.dir, resultFile))
	if err != nil {
		return r, err
	}
	defer f.Close()
	zip, err := gzip.NewReader(f)
	if err != nil {
		return r, err
	}
	data, err := io.ReadAll(zip)
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(data, &r)
}

func (k storedResult) artifacts() ([]string, error) {
	files, err := os.ReadDir(filepath.Join(k.dir, artifactsFolder))
	var names []string
	for _, f := range files {
		names = append(names, f.Name())
	}
	return names, err
}

// all lists the results to deliver.
func (s store) all() ([]storedResult, error) {
	folders, err := os.ReadDir(s.results)
	if err != nil {
		return nil, err
	}
	var all []storedResult
	for _, f := range folders {
		number, job, _ := strings.Cut(f.Name(), "-")
		token, err := strconv.ParseUint(number, 10, 64)
		if err != nil || !protocol.JobID(job) {
			continue // not a result
		}
		all = append(all, storedResult{dir: filepath.Join(s.results, f.Name()), job: job, token: token})
	}
	return all, nil
}
