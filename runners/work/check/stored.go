package check

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/kernelgate/kernelgate/gates"
	"github.com/kernelgate/kernelgate/gates/hindsight"
	"github.com/kernelgate/kernelgate/policies/policy"
	"github.com/kernelgate/kernelgate/policies/strict"
	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners/gather/plan"
	"github.com/kernelgate/kernelgate/runners/host/results"
)

// Stored is the evidence of past runs on disk.
type Stored struct {
	Files []string

	old    *hindsight.Policy            // of evidence without a policy next to it; nil until it is needed
	find   func() (string, error)       // names old
	parsed map[string]*hindsight.Policy // by text
}

// FindStored finds evidence: the files that are named, and every JSON file with evidence below the
// folders. It reads hidden folders only if they are named. Evidence without a policy next to it was
// judged by the policy old or, if that is "", by the repository's.
func FindStored(ctx context.Context, paths []string, old string) (*Stored, error) {
	s := &Stored{parsed: map[string]*hindsight.Policy{}}
	s.find = func() (string, error) {
		if old != "" {
			return old, nil
		}
		name, err := PolicyHere(ctx, nil)
		if err != nil {
			return "", usage.Errorf("by which policy the runs were judged is not known: name it with --old (%w)", err)
		}
		return name, nil
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, usage.Errorf("reading evidence: %w (kernelgate check writes results/)", err)
		}
		if !info.IsDir() {
			s.Files = append(s.Files, path)
			continue
		}
		if err := s.walk(ctx, path); err != nil {
			return nil, err
		}
	}
	if len(s.Files) == 0 {
		return nil, usage.Errorf("there is no evidence in %s (kernelgate check writes some into results/)", strings.Join(paths, ", "))
	}
	return s, nil
}

func (s *Stored) walk(ctx context.Context, dir string) error {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case d.IsDir() && path != dir && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case !d.Type().IsRegular() || filepath.Ext(path) != ".json":
			return nil
		}
		is, err := looksLikeEvidence(path)
		if is {
			s.Files = append(s.Files, path)
		}
		return err
	})
	if err != nil && ctx.Err() == nil {
		return usage.Errorf("looking for evidence: %w", err)
	}
	return err
}

// looksLikeEvidence reads the beginning of a file, where evidence names its schema.
func looksLikeEvidence(path string) (bool, error) {
	f, err := results.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	begin, err := io.ReadAll(io.LimitReader(f, 4096))
	return bytes.Contains(begin, []byte(`"`+gates.EvidenceSchema+`"`)), err
}

// Read reads the evidence of one of the files, and the policy that it was judged by.
func (s *Stored) Read(file string) (*gates.Evidence, hindsight.Policy, error) {
	e, err := ReadEvidence(file)
	if err != nil {
		return nil, hindsight.Policy{}, err
	}
	p, err := s.policyOf(file)
	return e, p, err
}

func (s *Stored) policyOf(file string) (hindsight.Policy, error) {
	beside := filepath.Join(filepath.Dir(file), StoredPolicy)
	text, err := results.ReadAtMost(beside, strict.MaxBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return s.given()
	}
	if err != nil {
		return hindsight.Policy{}, usage.Errorf("reading the policy of %s: %w", file, err)
	}
	if known := s.parsed[string(text)]; known != nil {
		return *known, nil
	}
	p, err := policy.Parse(beside, text)
	if err != nil {
		return hindsight.Policy{}, usage.Error{Err: fmt.Errorf("the policy of %s: %w", file, err)}
	}
	s.parsed[string(text)] = &hindsight.Policy{Policy: p, File: beside}
	return *s.parsed[string(text)], nil
}

// given is the policy of evidence that has none next to it.
func (s *Stored) given() (hindsight.Policy, error) {
	if s.old == nil {
		name, err := s.find()
		if err != nil {
			return hindsight.Policy{}, err
		}
		p, file, err := ReadPolicy(name)
		if err != nil {
			return hindsight.Policy{}, err
		}
		s.old = &hindsight.Policy{Policy: p, File: file}
	}
	return *s.old, nil
}

// ReadPolicy reads a policy by the name that a user gives: a file, or a shipped policy. The second
// result is the file name for messages.
func ReadPolicy(name string) (*policy.Policy, string, error) {
	file, text, err := plan.PolicyNamed(name)
	if err != nil {
		return nil, "", err
	}
	p, err := policy.Parse(file, text)
	if err != nil {
		return nil, "", usage.Error{Err: err}
	}
	return p, file, nil
}

// ReadEvidence reads stored evidence.
func ReadEvidence(file string) (*gates.Evidence, error) {
	data, err := results.Read(file)
	if err != nil {
		return nil, usage.Errorf("reading evidence: %w", err)
	}
	e, err := gates.ParseEvidence(file, data)
	if err != nil {
		return nil, usage.Error{Err: err}
	}
	return e, nil
}
