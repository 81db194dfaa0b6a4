package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/kernelgate/kernelgate/policies/usage"
	"github.com/kernelgate/kernelgate/runners/backend/cuda"
	"github.com/kernelgate/kernelgate/runners/backend/gpus"
	"github.com/kernelgate/kernelgate/runners/build/toolchain"
	"github.com/kernelgate/kernelgate/runners/gather/measure"
)

// workerCommand starts the process that uses the GPU. It is not for users.
const workerCommand = "gpu-worker"

func gpuWorkerCommand() *cobra.Command {
	return &cobra.Command{
		Use: workerCommand + " [REQUEST]", Hidden: true, Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return cuda.Worker(args) },
	}
}

// measureHere configures measurements by this program on this host.
func measureHere(c *measure.Config) error {
	if err := c.Includes.Check(); err != nil {
		return usage.Errorf("--include: %w", err)
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program: %w", err)
	}
	c.Worker = []string{program, workerCommand}
	if cache, err := toolchain.DefaultCache(os.Getenv); err == nil {
		c.Cache = cache.Dir // without a cache every build starts from scratch
	}
	return nil
}

// measureOn configures measurements on one GPU of this host. If no GPU is requested and none can be
// detected, the error is reported only when a GPU is needed.
func measureOn(c *measure.Config, wish string) error {
	if err := measureHere(c); err != nil {
		return err
	}
	all, err := gpus.Here(os.Getenv)
	switch {
	case wish == "" && len(all) > 0:
		c.GPU = all[0]
	case wish == "":
	case err != nil:
		return usage.Errorf("--gpu: %w", err)
	default:
		picked, err := gpus.Select(all, wish)
		if err != nil {
			return usage.Errorf("--gpu: %w", err)
		}
		if len(picked) != 1 {
			return usage.Errorf("--gpu: %q is %d GPUs (name one)", wish, len(picked))
		}
		c.GPU = picked[0]
	}
	return nil
}
