package worker

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/kernels/manifest"
	"github.com/kernelgate/kernelgate/runners"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/driver"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/nvml"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/oracle"
	"github.com/kernelgate/kernelgate/runners/backend/cuda/side"
	"github.com/kernelgate/kernelgate/runners/backend/interleave"
	"github.com/kernelgate/kernelgate/runners/build/pyref"
	"github.com/kernelgate/kernelgate/runners/tensor"
)

// A session handles one request.
type session struct {
	manifest  *manifest.Manifest // the base's, which describes the reference
	candidate *manifest.Manifest // with the candidate's implementation
	baseline  *manifest.Manifest // with the baseline's implementation, if there is a baseline
	request   Request
	send      func(Reply) error
	rng       *rand.Rand
	litter    *rand.Rand // for the content of scratch

	sms        int // of the GPU
	ctx        *driver.Context
	stream     *driver.Stream
	gpu        *nvml.Device // nil if NVML does not work
	meter      *meter       // nil before it is needed, or if there is no sensor
	oracle     *oracle.Oracle
	reference  *side.Kernel
	python     *pyref.Client // nil where the reference is on the device
	recordings tensor.Recordings
	handed     driver.Buffer // memory that its process has, too
	sides      map[rune]*side.Process
	spent      gates.Spent
	memory     uint64 // of the GPU
	l2         int    // bytes of its cache
}

const maxPadding = 64 << 20

// startSides starts the processes of the sides that the task needs, in random order, and each with
// a different amount of padding before everything that it loads.
func (s *session) startSides() error {
	s.rng, s.litter = rand.New(rand.NewPCG(s.request.Seed, 1)), rand.New(rand.NewPCG(s.request.Seed, 2))
	s.sides = map[rune]*side.Process{}
	round := s.request.Task == TaskRound
	flush := round || s.request.Task == TaskEnergy || s.request.Tune
	who := map[rune]string{gates.SideCandidate: string(runners.Candidate)}
	if s.request.Baseline != nil {
		who[gates.SideBaseline] = string(runners.Baseline)
	}
	if round {
		who[gates.SideControl] = "control"
	}
	switch s.request.Task {
	case TaskLaunch:
		return nil
	case TaskArms:
		p, err := side.Start(who[gates.SideCandidate], s.request.Program, os.Environ(), side.Setup{
			Manifest: s.request.Manifest, Own: s.request.Baseline.Manifest, Timeout: s.request.Timeout, Padding: s.rng.Int64N(maxPadding), Flush: true,
		})
		s.sides[gates.SideCandidate] = p
		return err
	}
	letters := []rune{gates.SideBaseline, gates.SideControl, gates.SideCandidate}
	s.rng.Shuffle(len(letters), func(i, j int) { letters[i], letters[j] = letters[j], letters[i] })
	for _, letter := range letters {
		if who[letter] == "" {
			continue
		}
		built := s.request.Baseline
		if letter == gates.SideCandidate {
			built = s.request.Candidate
		}
		p, err := side.Start(who[letter], s.request.Program, os.Environ(), side.Setup{
			Manifest: s.request.Manifest, Own: built.Manifest, Timeout: s.request.Timeout, Padding: s.rng.Int64N(maxPadding), Flush: flush,
		})
		if err != nil {
			return err
		}
		s.sides[letter] = p
	}
	return nil
}

func (s *session) close() {
	for _, p := range s.sides {
		p.Kill() // kill all of them before waiting for any
	}
	for _, p := range s.sides {
		p.Close()
	}
}

// open initialises the judge's context and waits for the sides' contexts.
func (s *session) open(c *driver.Context) error {
	var err error
	s.ctx = c
	if s.stream, err = c.NewStream(); err != nil {
		return err
	}
	p, err := c.Device().Properties()
	if err != nil {
		return err
	}
	s.memory, s.l2, s.sms = p.TotalMemory, p.L2Bytes, p.SMs
	s.manifest, s.candidate, s.baseline = s.manifest.On(s.sms), s.candidate.On(s.sms), s.baseline.On(s.sms)
	if library, err := nvml.Open(); err == nil {
		if gpu, err := library.DeviceByPCI(p.PCIBusID); err == nil {
			s.gpu = &gpu
		}
	}
	if s.request.Oracle != "" {
		image, err := os.ReadFile(s.request.Oracle)
		if err != nil {
			return fmt.Errorf("reading the judge's own kernels: %w", err)
		}
		if s.oracle, err = oracle.Load(c, s.stream, image); err != nil {
			return err
		}
	}
	if err := s.readRecordings(); err != nil {
		return err
	}
	if s.request.Reference != nil {
		if s.reference, err = side.LoadReference(c, s.stream, s.manifest, *s.request.Reference, s.request.Timeout); err != nil {
			return fmt.Errorf("loading the reference: %w", err)
		}
	}
	for _, p := range s.sides {
		if err := p.Up(); err != nil {
			return err
		}
	}
	return nil
}

// readRecordings reads the recordings that inputs come from.
func (s *session) readRecordings() (err error) {
	var asked []manifest.Recording
	for _, r := range s.manifest.Recorded {
		if slices.Contains(s.request.Recordings, r.Name) {
			asked = append(asked, r)
		}
	}
	if s.recordings, err = runners.ReadRecordings(s.manifest, asked, s.request.Recorded); err == nil && s.oracle != nil {
		s.oracle.Recordings = s.recordings
	}
	return err
}

// blame attributes a side's error: a failure of the candidate is evidence, anything else is a fault
// of the run.
func blame(p *side.Process, err error) error {
	failed, ok := errors.AsType[*side.Failure](err)
	switch {
	case ok && p.Who == string(runners.Candidate):
		return &interleave.Failed{Failure: failed.Failure}
	case ok:
		return fmt.Errorf("the %s: %w", p.Who, err)
	}
	return err
}

// expect makes the reference compute the expected outputs of the first launch of a batch.
func (s *session) expect(r *oracle.Reference, batch *oracle.InputBatch, dims manifest.Dims, original bool) error {
	if s.request.Task == TaskRound {
		return s.compute(r, batch, dims, original) // the round counts it
	}
	return runners.Spend(s.spent, gates.WorkReference, func() error { return s.compute(r, batch, dims, original) })
}

func (s *session) compute(r *oracle.Reference, batch *oracle.InputBatch, dims manifest.Dims, original bool) error {
	if s.python != nil {
		return s.expectPython(r, batch, original)
	}
	if err := r.Prepare(batch, 0, original); err != nil {
		return err
	}
	run, err := s.reference.Prepare(0, dims, r.Args, r.Layout.Offsets, r.Slot.Ptr)
	if err != nil {
		return err
	}
	if err := run(); err != nil {
		return fmt.Errorf("the reference: %w", err)
	}
	if err := s.reference.Wait(); err != nil {
		return fmt.Errorf("the reference: %w", err)
	}
	return nil
}

// outline returns the problem of a shape, with the candidate's toggles.
func (s *session) outline(shape manifest.Shape) (*tensor.Problem, error) {
	return tensor.Outline(s.candidate, shape, s.request.Candidate.Toggles)
}

// fitness returns the GPU's current state. Values that cannot be read are left out.
func (s *session) fitness() *gates.Fitness {
	if s.gpu == nil {
		return nil
	}
	f := &gates.Fitness{ClockMHz: map[string]int{}}
	if mhz, err := s.gpu.Clock(nvml.SMClock); err == nil {
		f.ClockMHz["sm"] = mhz
	}
	if mhz, err := s.gpu.Clock(nvml.MemoryClock); err == nil {
		f.ClockMHz["memory"] = mhz
	}
	if r, err := s.gpu.Reasons(); err == nil {
		f.Throttle = r.Throttling().Names()
	}
	f.Celsius, _ = s.gpu.Temperature()
	f.Watts, _ = s.gpu.Power()
	if n, err := s.gpu.UncorrectedErrors(); err == nil {
		f.ECCErrors = int(n)
	}
	ours := []int{os.Getpid()}
	if s.request.Python != nil {
		ours = append(ours, s.request.Python.PIDs...)
	}
	for _, p := range s.sides {
		ours = append(ours, p.PID())
	}
	if processes, err := s.gpu.Processes(); err == nil {
		for _, p := range processes {
			if !slices.Contains(ours, int(p.PID)) {
				f.Foreign = append(f.Foreign, fmt.Sprintf("process %d", p.PID))
			}
		}
	}
	return f
}

// state reads the GPU between two blocks. Values that cannot be read are left out.
func (s *session) state() (now interleave.State) {
	if s.gpu == nil {
		return now
	}
	if r, err := s.gpu.Reasons(); err == nil {
		now.Throttled = r.Throttling() != 0
	}
	if mhz, err := s.gpu.Clock(nvml.SMClock); err == nil {
		now.MHz = float64(mhz)
	}
	if celsius, err := s.gpu.Temperature(); err == nil {
		now.Celsius = float64(celsius)
	}
	if s.meter == nil {
		s.meter = meterOf(s.gpu)
	}
	if s.meter != nil && s.meter.power != nil {
		now.Watts, _ = s.meter.power()
	}
	return now
}
