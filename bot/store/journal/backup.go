package journal

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// A backup is a tar file. For each stream it has the server's description (<stream>/stream.json) and the server's snapshot in
// pieces (<stream>/00000001 and so on). The last two files are manifest.json, with the hash of every stream, and its own hash.
// A backup without them was cut short.

// backupOrder is the order in which streams are copied while bots write. Each stream is copied as it is at one moment, and the
// order makes the copies fit as after a crash: a delivery is marked as done, and a job is deleted, after its event was written,
// so the marks and the jobs come before the events. An event is written after the blobs that it names, so these come last.
var backupOrder = []string{"KV_LEASES", "KV_DELIVERY_STATE", "KV_MARKS", "JOBS", "EVENTS", "DELIVERIES", objects + "BUNDLES", objects + "ARTIFACTS"}

const (
	backupFormat = 1
	streamFile   = "stream.json"
	manifestFile = "manifest.json"
	manifestHash = "manifest.sha256"
	chunkSize    = 512 << 10
	// No message of a backup is larger: a piece is at most 1 MiB, and a description has a few kilobytes.
	maxMember = 2 << 20
)

// A Manifest says what a backup contains.
type Manifest struct {
	Format  int            `json:"format"`
	At      time.Time      `json:"at"` // when it was begun
	Version string         `json:"version,omitempty"`
	Last    uint64         `json:"last_event"`
	Hash    string         `json:"last_event_hash,omitempty"`
	Streams []BackupStream `json:"streams"`
}

// A BackupStream is one stream of a backup.
type BackupStream struct {
	Name     string `json:"name"`
	Messages uint64 `json:"messages"`
	Pieces   int    `json:"pieces"`
	Bytes    int64  `json:"bytes"`
	SHA256   string `json:"sha256"` // of the description and all pieces
}

// Bytes returns the size of all snapshots.
func (m Manifest) Bytes() (n int64) {
	for _, s := range m.Streams {
		n += s.Bytes
	}
	return n
}

// snapshotInfo is what the server says about a snapshot and wants to hear at its restore.
type snapshotInfo struct {
	Config json.RawMessage `json:"config"`
	State  json.RawMessage `json:"state"`
}

type snapshotState struct {
	Messages uint64 `json:"messages"`
	Last     uint64 `json:"last_seq"`
}

// Backup writes a copy of the journal to w. Bots may write meanwhile. It refuses a journal with damaged events.
func (j *Journal) Backup(ctx context.Context, w io.Writer) (m Manifest, err error) {
	report, err := j.Verify(ctx)
	if err == nil {
		err = errors.Join(report.Err(), j.CheckEnd(ctx))
	}
	if err != nil {
		return m, fmt.Errorf("back up the journal: %w", err)
	}
	m = Manifest{Format: backupFormat, At: j.opt.Now().UTC(), Version: j.opt.Version}
	out := tar.NewWriter(w)
	for _, name := range backupOrder {
		s, state, err := j.backupStream(ctx, out, name, m.At)
		if err != nil {
			return m, fmt.Errorf("back up stream %s: %w", name, err)
		}
		if name == "EVENTS" && state.Last > 0 {
			last, err := j.message(ctx, j.events, state.Last)
			if err != nil {
				return m, fmt.Errorf("back up event %d: %w", state.Last, err)
			}
			m.Last = state.Last
			_, m.Hash, _ = storedOf(last).hashes()
		}
		m.Streams = append(m.Streams, s)
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return m, err
	}
	sum := sha256.Sum256(text)
	err = addMember(out, manifestFile, text, m.At)
	if err == nil {
		err = addMember(out, manifestHash, []byte(hex.EncodeToString(sum[:])+"\n"), m.At)
	}
	if err == nil {
		err = out.Close()
	}
	if err != nil {
		return m, fmt.Errorf("write the backup: %w", err)
	}
	return m, nil
}

func addMember(out *tar.Writer, name string, data []byte, at time.Time) error {
	if err := out.WriteHeader(&tar.Header{Name: name, Size: int64(len(data)), Mode: 0o600, ModTime: at.Truncate(time.Second), Format: tar.FormatPAX}); err != nil {
		return err
	}
	_, err := out.Write(data)
	return err
}

// backupStream adds the server's snapshot of a stream.
func (j *Journal) backupStream(ctx context.Context, out *tar.Writer, name string, at time.Time) (s BackupStream, state snapshotState, err error) {
	pieces := j.nc.NewInbox()
	sub, err := j.nc.SubscribeSync(pieces)
	if err != nil {
		return s, state, err
	}
	defer func() { _ = sub.Unsubscribe() }() // it fails only on a closed connection
	ask, err := json.Marshal(map[string]any{"deliver_subject": pieces, "no_consumers": true, "chunk_size": chunkSize, "jsck": true})
	if err != nil {
		return s, state, err
	}
	info, err := apiRequest[snapshotInfo](ctx, j, "$JS.API.STREAM.SNAPSHOT."+name, ask)
	if err != nil {
		return s, state, err
	}
	if err := json.Unmarshal(info.State, &state); err != nil {
		return s, state, fmt.Errorf("reading the server's answer: %w", err)
	}
	text, err := json.Marshal(info)
	if err != nil {
		return s, state, err
	}
	sum := sha256.New()
	sum.Write(text)
	if err := addMember(out, name+"/"+streamFile, text, at); err != nil {
		return s, state, err
	}
	s = BackupStream{Name: name, Messages: state.Messages}
	for {
		waiting, cancel := context.WithTimeout(ctx, unanswered*j.opt.answerIn)
		m, err := sub.NextMsgWithContext(waiting)
		cancel()
		if err != nil {
			return s, state, fmt.Errorf("waiting for piece %d: %w", s.Pieces+1, err)
		}
		if len(m.Data) == 0 {
			if status := m.Header.Get("Status"); status != "" && status != "204" {
				return s, state, fmt.Errorf("the server ends with %s %s", status, m.Header.Get("Description"))
			}
			s.SHA256 = hex.EncodeToString(sum.Sum(nil))
			return s, state, nil
		}
		s.Pieces++
		s.Bytes += int64(len(m.Data))
		sum.Write(m.Data)
		if err := addMember(out, fmt.Sprintf("%s/%08d", name, s.Pieces), m.Data, at); err != nil {
			return s, state, err
		}
		if m.Reply != "" {
			if err := m.Respond(nil); err != nil {
				return s, state, err
			}
		}
	}
}

// apiRequest sends a request to JetStream whose answer is a T or an error. The answer comes when the server has begun.
func apiRequest[T any](ctx context.Context, j *Journal, subject string, data []byte) (answer T, err error) {
	ctx, cancel := context.WithTimeout(ctx, unanswered*j.opt.answerIn)
	defer cancel()
	m, err := j.nc.RequestWithContext(ctx, subject, data)
	if err != nil {
		return answer, err
	}
	var failed struct {
		Error *jetstream.APIError `json:"error"`
	}
	if err := errors.Join(json.Unmarshal(m.Data, &failed), json.Unmarshal(m.Data, &answer)); err != nil {
		return answer, fmt.Errorf("reading the server's answer: %w", err)
	}
	if failed.Error != nil {
		return answer, failed.Error
	}
	return answer, nil
}

// ErrBackup says that a file is not a whole backup.
var ErrBackup = errors.New("not a whole backup")

// CheckBackup reads a backup to its end and compares every hash.
func CheckBackup(r io.Reader) (Manifest, error) {
	return readBackup(r, func(string, []byte) error { return nil })
}

// readBackup hands the members of a backup to each, in the order of the file, and compares every hash.
func readBackup(r io.Reader, each func(stream string, data []byte) error) (m Manifest, err error) {
	in := tar.NewReader(r)
	var found []BackupStream
	sum := sha256.New()
	end := func() {
		if len(found) > 0 {
			found[len(found)-1].SHA256 = hex.EncodeToString(sum.Sum(nil))
		}
	}
	var text []byte
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return m, fmt.Errorf("%w: it ends before its manifest (was the backup cut short?)", ErrBackup)
		}
		if err != nil {
			return m, fmt.Errorf("%w: %w", ErrBackup, err)
		}
		if h.Size > maxMember || h.Typeflag != tar.TypeReg {
			return m, fmt.Errorf("%w: %q is no member of a backup", ErrBackup, h.Name)
		}
		data, err := io.ReadAll(in)
		if err != nil {
			return m, fmt.Errorf("%w: reading %s: %w", ErrBackup, h.Name, err)
		}
		stream, piece, _ := strings.Cut(h.Name, "/")
		switch {
		case h.Name == manifestFile:
			end()
			text = data
			continue
		case h.Name == manifestHash:
			return checkManifest(text, data, found)
		case text != nil:
			return m, fmt.Errorf("%w: %q comes after the manifest", ErrBackup, h.Name)
		case piece == streamFile:
			end()
			found = append(found, BackupStream{Name: stream})
			sum.Reset()
		case len(found) == 0 || found[len(found)-1].Name != stream || piece != fmt.Sprintf("%08d", found[len(found)-1].Pieces+1):
			return m, fmt.Errorf("%w: %q is not the next member", ErrBackup, h.Name)
		default:
			found[len(found)-1].Pieces++
			found[len(found)-1].Bytes += int64(len(data))
		}
		sum.Write(data)
		if err := each(stream, data); err != nil {
			return m, err
		}
	}
}

// checkManifest compares a manifest with its hash and with the streams that were read.
func checkManifest(text, hash []byte, found []BackupStream) (m Manifest, err error) {
	if sum := sha256.Sum256(text); strings.TrimSpace(string(hash)) != hex.EncodeToString(sum[:]) {
		return m, fmt.Errorf("%w: %s has a different hash", ErrBackup, manifestFile)
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("%w: %s: %w", ErrBackup, manifestFile, err)
	}
	if m.Format != backupFormat {
		return m, fmt.Errorf("%w: its format is %d, and this version reads %d", ErrBackup, m.Format, backupFormat)
	}
	if len(m.Streams) != len(found) || len(found) != len(backupOrder) {
		return m, fmt.Errorf("%w: it has %d streams, the manifest names %d, and a journal has %d", ErrBackup, len(found), len(m.Streams), len(backupOrder))
	}
	for i, want := range m.Streams {
		is := found[i]
		is.Messages = want.Messages // the server knows it
		if is != want || want.Name != backupOrder[i] {
			return m, fmt.Errorf("%w: stream %s differs from the manifest (%d pieces, %d bytes, hash %s; the manifest has %s, %d, %d, %s)",
				ErrBackup, is.Name, is.Pieces, is.Bytes, is.SHA256, want.Name, want.Pieces, want.Bytes, want.SHA256)
		}
	}
	return m, nil
}
