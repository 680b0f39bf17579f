package hookapitest

import (
	"context"
	"fmt"
	"maps"

	"bijou/hookenv/hookapi"
)

// Results returns the results that the action of a World has set, and the message of its failure, if any.
func (m *Memory) Results() (results map[string]any, failure string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.results), m.failure
}

// inAction locks the world for a call from an action. The caller unlocks m.mu.
func (h *memoryHook) inAction(ctx context.Context) error {
	if err := h.enter(ctx); err != nil {
		return err
	}
	if h.m.world.Action == nil {
		return hookapi.ErrNoAction
	}
	return nil
}

func (h *memoryHook) Action(ctx context.Context) (hookapi.Action, error) {
	defer h.m.mu.Unlock()
	if err := h.inAction(ctx); err != nil {
		return hookapi.Action{}, err
	}
	return *h.m.world.Action, nil
}

func (h *memoryHook) SetResults(ctx context.Context, results map[string]any) error {
	defer h.m.mu.Unlock()
	if err := h.inAction(ctx); err != nil {
		return err
	}
	mergeResults(h.m.results, results)
	return nil
}

// mergeResults merges dictionaries key by key, and replaces everything else.
func mergeResults(into, from map[string]any) {
	for key, value := range from {
		old, isOld := into[key].(map[string]any)
		fresh, isNew := value.(map[string]any)
		if isOld && isNew {
			mergeResults(old, fresh)
			continue
		}
		into[key] = value
	}
}

func (h *memoryHook) FailAction(ctx context.Context, message string) error {
	defer h.m.mu.Unlock()
	if err := h.inAction(ctx); err != nil {
		return err
	}
	h.m.failure = message
	return nil
}

func (h *memoryHook) LogAction(ctx context.Context, message string) error {
	defer h.m.mu.Unlock()
	if err := h.inAction(ctx); err != nil {
		return err
	}
	h.m.log = append(h.m.log, "ACTION "+message)
	return nil
}

func (h *memoryHook) Resource(ctx context.Context, name string) (string, error) {
	defer h.m.mu.Unlock()
	if err := h.enter(ctx); err != nil {
		return "", err
	}
	path, ok := h.m.world.Resources[name]
	if !ok {
		return "", hookapi.ErrUnknownResource
	}
	return path, nil
}

func (h *memoryHook) Storages(ctx context.Context) ([]hookapi.Storage, error) {
	defer h.m.mu.Unlock()
	return nil, h.enter(ctx)
}

// AddStorage always fails: a Memory has no storage.
func (h *memoryHook) AddStorage(ctx context.Context, counts map[string]int) error {
	defer h.m.mu.Unlock()
	if err := h.enter(ctx); err != nil {
		return err
	}
	for name := range counts {
		return fmt.Errorf("charm storage %q not found", name)
	}
	return nil
}
