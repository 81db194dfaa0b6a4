package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/kernelgate/kernelgate/kernels"
	"github.com/kernelgate/kernelgate/runners/cuda/driver"
)

// Serve reads one request and does it. An error has been told to the other side
// already.
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
		return errors.Join(err, enc.Encode(Reply{Error: err.Error()}))
	}
	return enc.Encode(Reply{Done: true})
}

func serve(r Request, hold func() error, send func(Reply) error) error {
	m, err := kernels.Parse(kernels.FileName, []byte(r.Manifest))
	if err != nil {
		return fmt.Errorf("reading the request's manifest: %w", err)
	}
	s := &session{manifest: m, candidate: m, request: r, send: send}
	if r.Candidate != nil {
		if s.candidate, err = r.Candidate.Joined(r.Manifest); err != nil {
			return fmt.Errorf("reading the candidate's manifest: %w", err)
		}
	}
	if r.Baseline != nil {
		if s.baseline, err = r.Baseline.Joined(r.Manifest); err != nil {
			return fmt.Errorf("reading the baseline's manifest: %w", err)
		}
	}
	// The sides make their contexts while this process makes its own.
	defer s.close()
	if err := s.startSides(); err != nil {
		return err
	}
	d, err := driver.Open()
	if err != nil {
		return err
	}
	device, err := d.Device(r.Ordinal)
	if err != nil {
		return err
	}
	thread, err := device.NewThread()
	if err != nil {
		return err
	}
	// The context is not released: the process ends anyway.
	return thread.Do(func(c *driver.Context) error {
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
		case TaskLaunch:
			return s.launches()
		}
		return fmt.Errorf("no task is named %q", r.Task)
	})
}
