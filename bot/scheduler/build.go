package scheduler

import (
	"slices"
	"time"

	"github.com/kernelgate/kernelgate/runners"
)

// A job for a GPU may be compiled on a host without one first. While such a host is here, the job is kept for it; for a short while
// only, so that no GPU is idle where those who compile have too much to do or have just died. Then it is anybody's, and whoever has a
// GPU compiles it too, as where nobody else does.

const (
	keptFor = 10 * time.Second // for those who compile, from when a job came
	hereFor = 40 * time.Second // since one asked: longer than it waits for an answer
)

// unbuilt tells whether the job may be compiled before it is measured.
func (i *item) unbuilt() bool { return i.Build != "" && !i.built }

// building tells whether its lease is that of somebody who compiles.
func (i *item) building() bool { return i.unbuilt() && i.lease != nil && i.lease.label == i.Build }

// giveUpBuild ends the attempt to compile a job whose holder was lost over it.
func (i *item) giveUpBuild() { i.built = i.built || i.building() }

// wants is the labels of those who may have it, most wanted first. Those who compile never measure, whatever a policy says.
func (i *item) wants() []string {
	if i.unbuilt() && !i.building() {
		return i.labels
	}
	return i.labels[1:]
}

// labelsOf is the label of those who compile the job, and then those of who may measure it. Every asker is held against them, for
// every job that waits: they are put together once.
func labelsOf(j Job) []string {
	return append([]string{j.Build}, slices.DeleteFunc(slices.Clone(j.Labels), runners.IsBuildLabel)...)
}

// keptUntil is until when a job is kept for those who compile; zero where it is not.
func (q *Queue) keptUntil(i *item, now time.Time) time.Time {
	if !i.unbuilt() || i.building() || !q.anyBuilds(i.Build, now) {
		return time.Time{}
	}
	return i.Queued.Add(keptFor)
}

// anyBuilds tells whether somebody is here who compiles under the label.
func (q *Queue) anyBuilds(label string, now time.Time) bool {
	if seen, ok := q.builders[label]; ok && now.Sub(seen) < hereFor {
		return true
	}
	return slices.ContainsFunc(q.jobs, func(i *item) bool { return i.lease != nil && i.lease.label == label && !i.waits(now) })
}

// noteBuilders remembers who asks for jobs to compile.
func (q *Queue) noteBuilders(now time.Time) {
	for _, a := range q.asking {
		for _, label := range a.Labels {
			if runners.IsBuildLabel(label) {
				q.builders[label] = now
			}
		}
	}
}
