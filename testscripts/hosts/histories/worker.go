package histories

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"bijou/state/keyspace"
)

// event is a line from a worker: the beginning or the outcome of an operation.
type event struct {
	At        int64      `json:"at"` // the time on the host's clock, which all processes share
	Operation *operation `json:"operation,omitempty"`
	Outcome   *outcome   `json:"outcome,omitempty"`
	Session   string     `json:"session,omitempty"` // begun
	Lost      bool       `json:"lost,omitempty"`    // the session was lost while the worker lived
	Closing   bool       `json:"closing,omitempty"` // the session is being closed
}

// These are the faults that a worker can have for a checker to find.
const (
	tornView   = "torn-view"   // reads each key in a separate view
	blindMove  = "blind-move"  // reads in a view, and writes without conditions
	emptyReply = "empty-reply" // reports some writes as done and does not write them
	stolenSlot = "stolen-slot" // acquires a slot that a different session holds
	freedSlot  = "freed-slot"  // releases a slot that a different, living session holds
)

// worker plays random operations.
type worker struct {
	space  *keyspace.Space
	random *rand.Rand
	id     string
	plant  string
	ends   int64 // the time when the worker is done
}

// Main runs a worker. Its arguments are the store's URL, the worker's id, a seed, a duration in milliseconds,
// and a fault.
func Main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	seed, err := strconv.ParseUint(args[2], 10, 64)
	if err != nil {
		return err
	}
	work, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}

	// The worker retries a store that is away for a moment, since a member can be down when a worker
	// starts.
	ctx := context.Background()
	var opened *keyspace.Space
	for opened == nil {
		if opened, err = keyspace.Create(ctx, args[0], "/histories/"); err != nil && !errors.Is(err, keyspace.ErrAway) {
			return err
		}
	}
	defer opened.Close()

	w := &worker{random: rand.New(rand.NewPCG(seed, 1)), id: args[1], plant: args[4], ends: now() + int64(work)*int64(time.Millisecond)}
	// Half of the workers remember what they have written, as agents do.
	remembers := func(string) bool { return seed%2 == 0 }
	w.space = keyspace.New(opened.Store(), remembers)
	return w.work(ctx)
}

func now() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err)
	}
	return t.Nano()
}

// tell writes the event in one write, so that a killed worker has reported it in full or not at all.
func tell(e event) {
	e.At = now()
	line, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	if _, err := os.Stdout.Write(append(line, '\n')); err != nil {
		os.Exit(1)
	}
}

// work plays until the time is over or the session is lost.
func (w *worker) work(ctx context.Context) error {
	tell(event{Session: w.id})
	session, err := w.space.NewSession(ctx)
	if err != nil {
		tell(event{Lost: true})
		return nil // the store is away
	}

	for now() < w.ends {
		select {
		case <-session.Done():
			tell(event{Lost: true})
			return nil
		case <-time.After(time.Duration(w.random.IntN(40)) * time.Millisecond):
		}

		op := w.choose()
		tell(event{Operation: &op})
		told, err := w.do(ctx, op, session)
		if err != nil {
			// If there was an error, a read has returned nothing, and a write may have happened.
			told = outcome{}
		}
		tell(event{Outcome: &told})
		if errors.Is(err, keyspace.ErrSessionLost) {
			tell(event{Lost: true})
			return nil
		}
	}

	tell(event{Closing: true})
	return session.Close(ctx)
}

func (w *worker) choose() operation {
	op := operation{Session: w.id, Slot: w.random.IntN(slots), From: w.random.IntN(registers), N: 1 + w.random.IntN(100)}
	op.To = (op.From + 1 + w.random.IntN(registers-1)) % registers
	op.Kind = []string{opView, opView, opView, opMove, opMove, opMove, opPut, opHold, opDrop}[w.random.IntN(9)]
	return op
}

func register(i int) string { return "registers/" + strconv.Itoa(i) }
func slot(i int) string     { return "slots/" + strconv.Itoa(i) }

func (w *worker) do(ctx context.Context, op operation, s *keyspace.Session) (told outcome, err error) {
	if op.Kind == opView {
		return w.view(ctx)
	}
	if w.plant == blindMove && op.Kind == opMove {
		return w.moveBlindly(ctx, op)
	}

	err = w.space.Update(ctx, func(tx *keyspace.Tx) (err error) {
		told, err = w.update(tx, op, s)
		return err
	})
	told.Known = err == nil
	return told, err
}

// view reads everything at one revision.
func (w *worker) view(ctx context.Context) (told outcome, err error) {
	if w.plant == tornView {
		for i := range registers {
			if err := w.space.View(ctx, func(v *keyspace.View) error { return readRegister(v, i, &told.World) }); err != nil {
				return told, err
			}
			time.Sleep(2 * time.Millisecond)
		}
	}

	err = w.space.View(ctx, func(v *keyspace.View) error {
		read := world{}
		for i := range slots {
			if err := readSlot(v, i, &read); err != nil {
				return err
			}
		}
		for i := range registers {
			if err := readRegister(v, i, &read); err != nil {
				return err
			}
		}
		if w.plant == tornView {
			read.Registers = told.World.Registers
		}
		told.World = read
		return nil
	})
	told.Known = err == nil
	return told, err
}

func readRegister(v *keyspace.View, i int, into *world) (err error) {
	into.Registers[i], _, err = keyspace.Load[int](v, register(i))
	return err
}

func readSlot(v *keyspace.View, i int, into *world) (err error) {
	into.Holders[i], _, err = keyspace.Load[string](v, slot(i))
	return err
}

func (w *worker) update(tx *keyspace.Tx, op operation, s *keyspace.Session) (told outcome, err error) {
	switch op.Kind {
	case opPut:
		if w.plant == emptyReply && op.N%3 == 0 {
			return told, nil
		}
		return told, tx.Put(register(op.To), op.N)
	case opMove:
		for _, i := range []int{op.From, op.To} {
			if err := readRegister(tx.View, i, &told.World); err != nil {
				return told, err
			}
		}
		return told, w.write(tx, op, told.World)
	}

	if err := readSlot(tx.View, op.Slot, &told.World); err != nil {
		return told, err
	}
	holder := told.World.Holders[op.Slot]
	switch {
	case op.Kind == opHold && (holder == "" || w.plant == stolenSlot):
		return told, tx.PutLeased(slot(op.Slot), w.id, s)
	case op.Kind == opDrop && (holder == w.id || w.plant == freedSlot):
		tx.Remove(slot(op.Slot))
	}
	return told, nil
}

func (w *worker) write(tx *keyspace.Tx, op operation, read world) error {
	if err := tx.Put(register(op.From), read.Registers[op.From]-op.N); err != nil {
		return err
	}
	return tx.Put(register(op.To), read.Registers[op.To]+op.N)
}

func (w *worker) moveBlindly(ctx context.Context, op operation) (told outcome, err error) {
	if told, err = w.view(ctx); err != nil {
		return told, err
	}
	time.Sleep(5 * time.Millisecond)
	err = w.space.Update(ctx, func(tx *keyspace.Tx) error { return w.write(tx, op, told.World) })
	told.Known = err == nil
	return told, err
}
