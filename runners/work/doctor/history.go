package doctor

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/kernelgate/kernelgate/runners/protocol"
)

// How many times are kept for each device, and how many are needed to know the usual time.
const (
	keptTimes = 30
	fewTimes  = 3
)

// times holds the known kernel's times in microseconds, by device, newest last.
type times map[string][]float64

// compare compares a time with the earlier ones on the same device, and adds it to them if it is
// similar.
func (t SelfTest) compare(factor float64, r *protocol.SelfTest) error {
	all, err := readTimes(t.History)
	if err != nil {
		return err
	}
	key := cmp.Or(t.Device, t.Kind)
	before := all[key]
	if len(before) >= fewTimes {
		r.Usual = slices.Sorted(slices.Values(before))[len(before)/2]
		if r.Micros > factor*r.Usual || r.Micros < r.Usual/factor {
			return fmt.Errorf("the known kernel takes %.4g µs, and took %.4g µs on this host before (if the new time is right, remove %s)", r.Micros, r.Usual, t.History)
		}
	}
	all[key] = append(before, r.Micros)
	all[key] = all[key][max(0, len(all[key])-keptTimes):]
	return writeTimes(t.History, all)
}

// readTimes treats a damaged file as empty: it is only a cache of earlier times.
func readTimes(file string) (times, error) {
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the times of earlier self-tests: %w", err)
	}
	var all times
	if err := json.Unmarshal(text, &all); err != nil || all == nil {
		return times{}, nil
	}
	for key, list := range all {
		all[key] = slices.DeleteFunc(list, func(micros float64) bool { return !(micros > 0) })
	}
	return all, nil
}

func writeTimes(file string, all times) error {
	text, err := json.Marshal(all)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(file), 0o755)
	}
	part := file + ".part"
	if err == nil {
		err = os.WriteFile(part, text, 0o644)
	}
	if err == nil {
		err = os.Rename(part, file)
	}
	if err != nil {
		return fmt.Errorf("keeping the times of self-tests: %w", err)
	}
	return nil
}
