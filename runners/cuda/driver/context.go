package driver

// A Context is a device's context, current on the thread of the [Thread.Do]
// that handed it out and of use there alone.
type Context struct {
	d   *Driver
	dev Device
}

// Device is the GPU that the context belongs to.
func (c *Context) Device() Device { return c.dev }

// Synchronize waits for all work in the context and reports its faults.
func (c *Context) Synchronize() error {
	if code := c.d.sym.cuCtxSynchronize.call(); code != success {
		return c.d.newError(code, "waiting for "+c.dev.String())
	}
	return nil
}

// ResetPersistingL2 turns all persisting lines of the L2 cache back into normal
// ones. GPUs before Ampere have none: the code is then notSupported.
func (c *Context) ResetPersistingL2() error {
	if code := c.d.sym.cuCtxResetPersistingL2Cache.call(); code != success {
		return c.d.newError(code, "resetting the persisting L2 lines of "+c.dev.String())
	}
	return nil
}
