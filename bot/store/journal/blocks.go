package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
)

// The server keeps a stream's messages in files, one block after the other, and where it is told to it compresses a block
// once the next one is made. Killed before that has its first message, it drops the empty one at the next start and writes
// on in the compressed one, which from then on is "s2: corrupt input": the whole stream is lost. Events were compressed
// once, and a server that has begun so goes on until it is started again.

// mendBlocks unpacks the block that the server is going to write on in, before it starts.
func mendBlocks(dir string) error {
	newest, number := "", 0
	found, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", "EVENTS", "msgs", "*.blk"))
	if err != nil {
		return err
	}
	for _, file := range found {
		info, err := os.Stat(file)
		if err != nil {
			return fmt.Errorf("open journal: %w", err)
		}
		n, err := strconv.Atoi(strings.TrimSuffix(filepath.Base(file), ".blk"))
		if err == nil && info.Size() > 0 && n > number {
			newest, number = file, n
		}
	}
	if newest == "" {
		return nil
	}
	if err := unpack(newest); err != nil {
		return fmt.Errorf("open journal: unpack the newest events: %w; restore the journal from a backup", err)
	}
	return nil
}

func unpack(file string) error {
	packed, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var meta server.CompressionInfo
	n, err := meta.UnmarshalMetadata(packed)
	if n == 0 || err != nil {
		return nil // not packed; what is no block at all is the server's to say
	}
	data, err := meta.Algorithm.Decompress(packed[n:])
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	aside := file + ".unpacked" // no name of the server's
	f, err := os.OpenFile(aside, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(aside, file); err != nil {
		return err
	}
	return syncDir(filepath.Dir(file))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
