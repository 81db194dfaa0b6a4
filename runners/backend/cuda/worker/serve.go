package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/driver"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/side"
	"github.com/kernelgate/kernelgate/runners/build/pyref"
)

// Serve reads one request and does it. It has already sent an error that it returns to the other
// side.
func Serve(in io.Reader, out io.Writer) error {
	enc := json.NewEncoder(out)
	var r Request
	dec := json.NewDecoder(in)
	err := dec.Decode(&r)
	hold := func() error {
		if !r.Hold {
			return nil
		}
		return dec.Decode(&Start{})
	}
	if err == nil {
		err = serve(r, hold, func(reply Reply) error { return enc.Encode(reply) })
	}
	if err != nil {
		mistake, _ := errors.AsType[*pyref.Mistake](err)
		return errors.Join(err, enc.Encode(Reply{Error: err.Error(), Mistake: mistake}))
	}
	return enc.Encode(Reply{Done: true})
}

func serve(r Request, hold func() error, send func(Reply) error) error {
	s := &session{request: r, send: send, python: r.Python.client(), spent: gates.Spent{}}
	// The sides make their contexts while this process makes its own, and reads.
	defer s.close()
	if err := s.startSides(); err != nil {
		return err
	}
	read := make(chan error, 1)
	go func() { read <- s.manifests() }()
	d, err := driver.Open()
	if err != nil {
		return err
	}
	device, err := d.Device(0) // the environment shows only this one, or the first one is meant
	if err != nil {
		return err
	}
	thread, err := device.NewThread()
	if err != nil {
		return err
	}
	// The context is not released: the process ends anyway.
	return thread.Do(func(c *driver.Context) error {
		if err := <-read; err != nil {
			return err
		}
		if err := s.open(c); err != nil {
			return err
		}
		if err := hold(); err != nil {
			return err
		}
		switch r.Task {
		case TaskCases:
			return s.cases()
		case TaskRound:
			return s.round()
		case TaskEnergy:
			return s.energy()
		case TaskArms:
			return s.arms()
		case TaskLaunch:
			return s.launches()
		}
		return fmt.Errorf("no task is named %q", r.Task)
	})
}

// manifests reads the base's manifest and the sides' manifests.
func (s *session) manifests() (err error) {
	if s.manifest, err = manifest.Parse(manifest.FileName, []byte(s.request.Manifest)); err != nil {
		return fmt.Errorf("reading the request's manifest: %w", err)
	}
	s.candidate = s.manifest // without a candidate, this describes how to launch the reference
	for _, own := range []struct {
		into  **manifest.Manifest
		built *side.Built
	}{{&s.candidate, s.request.Candidate}, {&s.baseline, s.request.Baseline}} {
		switch {
		case own.built == nil:
		case own.built.Manifest == "":
			*own.into = s.manifest.Picked(own.built.Picks)
		default:
			if *own.into, err = own.built.Joined(s.request.Manifest); err != nil {
				return fmt.Errorf("reading a side's manifest: %w", err)
			}
		}
	}
	return nil
}
