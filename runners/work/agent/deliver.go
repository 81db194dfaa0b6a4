package agent

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kernelgate/kernelgate/gates"
)

// deliverAll delivers results that an earlier process left behind, or that an earlier server did
// not accept.
func (a *agent) deliverAll(ctx context.Context) error {
	all, err := a.store.all()
	if err != nil {
		return fmt.Errorf("looking for results to deliver: %w", err)
	}
	for _, k := range all {
		if err := a.deliver(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

// deliver delivers a stored result, or leaves it on disk if ctx ends first. If the server will
// never accept the result, deliver replaces it by a fault that says so: without an answer the job
// would be measured again and again.
func (a *agent) deliver(ctx context.Context, k storedResult) error {
	ctx, cancel := a.outlive(ctx)
	defer cancel()
	log := a.Log.With("job", k.job, "token", k.token)
	err := a.send(ctx, k)
	var status statusError
	if errors.As(err, &status) && final(err) {
		log.Error("the server refuses the result; reporting this as a fault of the runner", "error", err)
		if err = k.fault(fmt.Sprintf("the result could not be delivered: %s", status)); err == nil {
			err = a.send(ctx, k)
		}
	}
	switch {
	case errors.Is(err, ErrRefused):
		return err // keep the result: the next token may be valid
	case ctx.Err() != nil && err != nil:
		log.Warn("the result is delivered at the next start of the runner")
		return ctx.Err()
	case errors.Is(err, errLost), errors.Is(err, errCancelled):
		log.Info("the server does not need the result", "reason", err)
	case err != nil:
		log.Error("the result is lost", "error", err)
	default:
		log.Info("result delivered")
	}
	if err := os.RemoveAll(k.dir); err != nil {
		return fmt.Errorf("removing a delivered result: %w", err)
	}
	return nil
}

func (a *agent) send(ctx context.Context, k storedResult) error {
	r, err := k.read()
	if err != nil {
		return fmt.Errorf("reading the kept result: %w", err)
	}
	names, err := k.artifacts()
	if err != nil {
		return fmt.Errorf("reading the kept artifacts: %w", err)
	}
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(k.dir, artifactsFolder, name))
		if err != nil {
			return fmt.Errorf("reading a kept artifact: %w", err)
		}
		err = a.persist(ctx, "delivering "+name, func() error { return a.client.artifact(ctx, k.job, k.token, name, data) })
		var status statusError
		if errors.As(err, &status) {
			r.Log += fmt.Sprintf("\n%s was not kept: %s\n", name, status)
			continue
		}
		if err != nil {
			return err
		}
		r.Artifacts = append(r.Artifacts, name)
	}
	var body bytes.Buffer
	zip := gzip.NewWriter(&body)
	if err := errors.Join(json.NewEncoder(zip).Encode(r), zip.Close()); err != nil {
		return fmt.Errorf("packing the result: %w", err)
	}
	return a.persist(ctx, "delivering the result", func() error { return a.client.result(ctx, k.job, body.Bytes()) })
}

// fault replaces the result by a fault.
func (k storedResult) fault(text string) error {
	r, err := k.read()
	if err != nil {
		return err
	}
	var e gates.Evidence
	if err := json.Unmarshal(r.Evidence, &e); err != nil {
		return err
	}
	short := gates.Evidence{
		Schema: e.Schema, Kernel: e.Kernel, Mode: e.Mode, Provenance: e.Provenance, Change: e.Change, Device: e.Device, Fault: text,
	}
	if r.Evidence, err = json.Marshal(short); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(filepath.Join(k.dir, artifactsFolder)), os.Mkdir(filepath.Join(k.dir, artifactsFolder), 0o700)); err != nil {
		return err
	}
	r.Log = ""
	return k.write(r)
}
