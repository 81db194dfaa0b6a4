package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"

	"github.com/kernelgate/kernelgate/bot/store/journal"
)

// The embedded journal belongs to the bot that runs, so `kernelgate backup` and `kernelgate verify` ask the bot, through a
// socket that only its user and root can open. With an external NATS server they ask that.

const (
	controlSocket = "control.sock"
	backupPath    = "/backup"
	verifyPath    = "/verify"
)

// listenControl opens the socket. It returns nil if the path of the data folder is too long for one: then backups are made
// while the bot is stopped.
func (s *Server) listenControl(ctx context.Context) (net.Listener, error) {
	path := filepath.Join(s.opt.Data, controlSocket)
	if len(s.opt.NATS) > 0 {
		return nil, nil
	}
	if len(path) > maxSocketPath {
		s.log.Warn("the path of the data folder is too long for a socket: kernelgate backup works only while the bot is stopped", "socket", path, "most", maxSocketPath)
		return nil, nil
	}
	return listenUnix(ctx, path)
}

func (s *Server) controlHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+backupPath, func(w http.ResponseWriter, r *http.Request) {
		out := &begun{to: w}
		m, err := s.Journal.Backup(r.Context(), out)
		switch {
		case err == nil:
			s.log.Info("a backup was made", "events", m.Last, "bytes", m.Bytes())
		case out.written:
			s.log.Warn("a backup failed", "err", err)
			panic(http.ErrAbortHandler) // the reader must not take it for a whole one
		default:
			answerError(w, err)
		}
	})
	mux.HandleFunc("GET "+verifyPath, func(w http.ResponseWriter, r *http.Request) {
		report, err := VerifyAll(r.Context(), s.Journal)
		if err != nil {
			answerError(w, err)
			return
		}
		_ = json.NewEncoder(w).Encode(report)
	})
	return mux
}

// begun remembers whether something was written.
type begun struct {
	to      io.Writer
	written bool
}

func (b *begun) Write(p []byte) (int, error) {
	b.written = true
	return b.to.Write(p)
}

func answerError(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	if errors.Is(err, journal.ErrDamaged) {
		status = http.StatusConflict
	}
	http.Error(w, err.Error(), status)
}

// VerifyAll verifies the events and the blobs of a journal.
func VerifyAll(ctx context.Context, j *journal.Journal) (journal.Report, error) {
	report, err := j.Verify(ctx)
	if err == nil {
		err = j.VerifyBlobs(ctx, &report)
	}
	if end := j.CheckEnd(ctx); err == nil && errors.Is(end, journal.ErrDamaged) {
		report.Damage = append(report.Damage, end.Error())
	} else if err == nil {
		err = end
	}
	return report, err
}

// ErrNoBot says that no bot answers at the data folder.
var ErrNoBot = errors.New("no bot runs on this data folder")

// AskForBackup has the bot of a data folder write a backup to w.
func AskForBackup(ctx context.Context, data string, w io.Writer) error {
	body, err := askControl(ctx, data, backupPath)
	if err != nil {
		return err
	}
	defer body.Close()
	if _, err := io.Copy(w, body); err != nil {
		return fmt.Errorf("the backup broke off (the bot's log may say why): %w", err)
	}
	return nil
}

// AskToVerify has the bot of a data folder verify its journal.
func AskToVerify(ctx context.Context, data string) (r journal.Report, err error) {
	body, err := askControl(ctx, data, verifyPath)
	if err != nil {
		return r, err
	}
	defer body.Close()
	if err := json.NewDecoder(body).Decode(&r); err != nil {
		return r, fmt.Errorf("reading the bot's answer: %w", err)
	}
	return r, nil
}

func askControl(ctx context.Context, data, path string) (io.ReadCloser, error) {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(data, controlSocket))
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://bot"+path, nil)
	if err != nil {
		return nil, err
	}
	answer, err := (&http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}).Do(r)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EINVAL) {
		return nil, ErrNoBot // or its path is too long for a socket
	}
	if err != nil {
		return nil, fmt.Errorf("asking the bot: %w", err)
	}
	if answer.StatusCode == http.StatusOK {
		return answer.Body, nil
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 4096))
	if answer.StatusCode == http.StatusConflict {
		return nil, fmt.Errorf("the bot answers: %s%w", text, journal.ErrDamaged)
	}
	return nil, fmt.Errorf("the bot answers %s: %s", answer.Status, text)
}
