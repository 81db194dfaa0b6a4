package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// maxPayload leaves room above GitHub's largest webhook, 25 MB.
const maxPayload = 32 << 20

// startServer starts a JetStream server over dir that no other process can reach.
func startServer(dir string, syncAlways bool, limit int64, log serverLog) (*server.Server, error) {
	srv, err := server.NewServer(&server.Options{
		ServerName: "kernelgate",
		DontListen: true,
		JetStream:  true,
		StoreDir:   dir,
		// 0 would mean the server's default.
		JetStreamMaxStore: limit,
		SyncAlways:        syncAlways,
		MaxPayload:        maxPayload,
		MaxPending:        8 * maxPayload,
		NoSigs:            true,
	})
	if err != nil {
		return nil, fmt.Errorf("open journal %s: %w", dir, err)
	}
	srv.SetLogger(log, false, false)
	srv.Start()
	if !srv.ReadyForConnections(time.Minute) || !srv.JetStreamEnabled() {
		srv.Shutdown()
		srv.WaitForShutdown()
		return nil, fmt.Errorf("open journal %s: the embedded server did not start; its log says why (check free disk space and the folder's owner)", dir)
	}
	return srv, nil
}

// serverLog writes the server's lines to slog. Its notices are a start-up banner, so their level is
// debug.
type serverLog struct {
	log      *slog.Logger
	critical func(line string) // is called for the line about a write error after which the server stores nothing more
}

func (l serverLog) Noticef(f string, v ...any) { l.log.Debug(fmt.Sprintf("nats: "+f, v...)) }
func (l serverLog) Warnf(f string, v ...any) {
	line := fmt.Sprintf("nats: "+f, v...)
	if strings.Contains(line, "Maximum payloads over") { // maxPayload is as large on purpose
		l.log.Debug(line)
		return
	}
	l.log.Warn(line)
}
func (l serverLog) Errorf(f string, v ...any) {
	line := fmt.Sprintf(f, v...)
	l.log.Error("nats: " + line)
	if l.critical != nil && strings.Contains(line, "ritical write error") {
		l.critical(line)
	}
}
func (l serverLog) Fatalf(f string, v ...any) { l.log.Error(fmt.Sprintf("nats: "+f, v...)) }
func (l serverLog) Debugf(string, ...any)     {}
func (l serverLog) Tracef(string, ...any)     {}

// A dirLock keeps a second process out: the server would accept it, and both would write the same
// files.
type dirLock struct{ f *os.File }

const lockFile = "LOCK"

func lockDir(dir string) (*dirLock, error) {
	if err := CheckOwner(dir); err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open journal: make folder %s: %w; choose a folder that this user may write", dir, err)
	}
	path := filepath.Join(dir, lockFile)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if errors.Is(err, fs.ErrPermission) {
		return nil, notOurs(err, dir)
	}
	if err != nil {
		return nil, fmt.Errorf("open journal: %w; choose a folder that this user may write", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(lockError(dir, path, err), f.Close())
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteString(strconv.Itoa(os.Getpid()) + "\n")
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open journal: write %s: %w", path, err), f.Close())
	}
	return &dirLock{f}, nil
}

func lockError(dir, file string, err error) error {
	if !errors.Is(err, syscall.EWOULDBLOCK) {
		return fmt.Errorf("open journal: lock %s: %w; keep the journal on a local disk", file, err)
	}
	holder, _ := os.ReadFile(file)
	return fmt.Errorf("open journal %s: %w (process %s); stop that process or choose another folder", dir, errLocked, strings.TrimSpace(string(holder)))
}

// release keeps the file: without it, two later processes could lock two files of the same name. It
// unlocks explicitly, because a child process that is just starting still has the file open.
func (l *dirLock) release() error {
	if l == nil {
		return nil
	}
	return errors.Join(syscall.Flock(int(l.f.Fd()), syscall.LOCK_UN), l.f.Close())
}

// checkServer refuses servers without atomic batches, which came with 2.12.
func checkServer(nc *nats.Conn, url string) error {
	version := nc.ConnectedServerVersion()
	if ok, err := atLeast(version, 2, 12); err != nil || !ok {
		return fmt.Errorf("open journal: the NATS server at %s is version %q; kernelgate needs 2.12 or later: upgrade it, or leave the URL out to use the embedded server", url, version)
	}
	return nil
}

func atLeast(version string, major, minor int) (bool, error) {
	var a, b int
	if _, err := fmt.Sscanf(strings.TrimPrefix(version, "v"), "%d.%d", &a, &b); err != nil {
		return false, fmt.Errorf("version %q: %w", version, err)
	}
	return a > major || a == major && b >= minor, nil
}
