package controller

// Idle reports whether all accepted deliveries are handled and all queues are empty.
func (k *Controller) Idle() bool {
	c := k.Counts()
	return c.Handled >= c.Accepted && k.resyncQueue.idle() && k.reconcileQueue.idle() && k.publishQueue.idle()
}

func (w *workQueue[K]) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.tasks) == 0
}
