package planner_test

import (
	"strings"
	"testing"

	"github.com/kernelgate/kernelgate/bot/change"
	"github.com/kernelgate/kernelgate/bot/planner"
)

// onDevices is the policy with different devices.
func onDevices(t *testing.T, devices string) string {
	return replaced(t, policyYAML, "devices: [pool]", "devices: "+devices)
}

// A kernel has one run for each device that the policy names, with a bundle that names the device.
func TestRunOnEachDevice(t *testing.T) {
	w := newWorld(t, usual().with(tree{policyFile: onDevices(t, "{block: [l4, a100], inform: [h200]}")}))
	id, facts := w.propose(tree{folder + "/scale.c": "// head\n"})
	p := w.plan(id, facts)
	var got []string
	bundles := map[string]bool{}
	for _, k := range p.Kernels {
		line := k.Name + ", " + k.Key().String() + ", " + strings.Join(k.Labels, " or ") + ", of " + k.ManifestName()
		if k.Informs {
			line += ", informs"
		}
		got = append(got, line)
		bundles[k.Bundle] = true
		if job := w.read(k.Bundle); job.Provenance.Label != k.Device {
			t.Errorf("%s: the bundle is for %q", k.Name, job.Provenance.Label)
		}
		again, err := w.planner.Rerun(t.Context(), id, facts, planner.Rerun{Folder: folder, Device: k.Device, Rounds: 7})
		if err != nil {
			t.Fatal(err)
		}
		if job := w.read(again); job.Provenance.Label != k.Device || job.Rounds != 7 {
			t.Errorf("%s: measured again for %q", k.Name, job.Provenance.Label)
		}
	}
	const want = `scale on l4, kernels/scale on l4, l4, of scale
scale on a100, kernels/scale on a100, a100, of scale
scale on h200, kernels/scale on h200, h200, of scale, informs`
	if strings.Join(got, "\n") != want || len(bundles) != 3 {
		t.Errorf("%d bundles:\n%s", len(bundles), strings.Join(got, "\n"))
	}
}

// What needs no runner has one run.
func TestOneRunOfSeveralDevices(t *testing.T) {
	w := newWorld(t, usual().with(tree{policyFile: onDevices(t, "{all: [l4, h200]}")}))
	p := w.plan(w.propose(tree{folder + "/kernel.yaml": "", folder + "/scale.c": "", folder + "/reference.c": ""}))
	if len(p.Kernels) != 1 || p.Kernels[0].Device != "" || p.Evidence[folder] == nil {
		t.Errorf("a removed kernel: %+v", p.Kernels)
	}
}

// An author cannot drop a device: the base's policy says which there are.
func TestHeadCannotDropADevice(t *testing.T) {
	w := newWorld(t, usual().with(tree{policyFile: onDevices(t, "{all: [l4, h200]}")}))
	for _, devices := range []string{"{all: [l4]}", "[l4]", "{block: [l4], inform: [h200]}"} {
		p := w.plan(w.propose(tree{folder + "/scale.c": "// head\n", policyFile: onDevices(t, devices)}))
		if len(p.Kernels) != 2 || p.Kernels[1].Device != "h200" || p.Kernels[1].Informs {
			t.Errorf("%s: %+v", devices, p.Kernels)
		}
		if p.RuleChange == nil || !p.RuleChange.Loosens {
			t.Errorf("%s asks nobody: %+v", devices, p.RuleChange)
		}
	}
}

// Two kernels of one name have checks of different names on every device.
func TestNamesOnDevices(t *testing.T) {
	w := newWorld(t, usual().with(tree{policyFile: onDevices(t, "{all: [l4, h200]}")}, kernel("kernels/other", "// other\n")))
	p := w.plan(w.propose(tree{folder + "/scale.c": "// head\n", "kernels/other/scale.c": "// head\n"}))
	names := map[string]change.KernelKey{}
	for _, k := range p.Kernels {
		if k.ManifestName() != "scale" {
			t.Errorf("%s is of %s", k.Name, k.ManifestName())
		}
		names[k.Name] = k.Key()
	}
	if len(names) != 4 {
		t.Errorf("%v", names)
	}
}
