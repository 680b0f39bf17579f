// Package access says who may read and write which key of an environment: operators all of them, the
// agents of a machine what their units need.
//
// It is pure. It reads the state only through a [Reader], at one revision, and it enforces nothing: whoever
// stands between an agent and the store asks it. The table is in table.go, a row for each pattern of a
// key, in the order of package keys. A key without a row is refused.
package access

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Identity is who asks: an operator, or the agents of one machine. The zero Identity is nobody, who may
// do nothing.
type Identity struct {
	operator bool
	machine  string
}

// Operator returns the identity of operators, provisioners and all that has the store itself.
func Operator() Identity { return Identity{operator: true} }

// Agent returns the identity of the agents of the machine with that id, its units' included.
func Agent(machine string) Identity { return Identity{machine: machine} }

// String names the identity in messages.
func (i Identity) String() string {
	switch {
	case i.operator:
		return "an operator"
	case i.machine == "":
		return "nobody"
	}
	return "machine " + i.machine
}

// Op is what is asked for.
type Op string

// The operations. List takes a prefix, which ends with a slash. Watch takes a key, or a prefix. Lease puts
// a key under a lease of the one who asks, Put puts it under none.
const (
	Get    Op = "get"
	List   Op = "list"
	Watch  Op = "watch"
	Put    Op = "put"
	Delete Op = "delete"
	Lease  Op = "lease"
)

// Ops lists the operations.
func Ops() []Op { return []Op{Get, List, Watch, Put, Delete, Lease} }

// ErrRefused is the kind of every refusal of [May].
var ErrRefused = errors.New("not allowed")

// Refusal is an [ErrRefused] with who asked for what, and why they may not.
type Refusal struct {
	Identity Identity
	Op       Op
	Key      string
	Why      string
}

// Error returns the message.
func (r *Refusal) Error() string {
	return fmt.Sprintf("%s cannot %s %q: %s", r.Identity, r.Op, r.Key, r.Why)
}

// Unwrap returns [ErrRefused].
func (r *Refusal) Unwrap() error { return ErrRefused }

// May returns nil if the identity may do that, with the state as the placement reads it. It returns a
// [Refusal] if not, and the placement's error if the state could not be read.
//
// Of a Get, old is the value that is there; nil if the key is absent. To be told that is allowed for every
// key that has a row. Of a Put, Lease and Delete, old is the value before and new the one after. Neither is
// used of a List and a Watch, which are about whole prefixes and are to be filtered: a list and a watch show the
// keys that the identity may Get. A watch also tells that a key was deleted, as long as it is allowed itself: what
// was allowed as it began may not be any more.
func May(id Identity, p *Placement, op Op, key string, old, new []byte) error {
	if id.operator {
		return nil
	}

	r, v := find(key)
	refuse := func(why string) error { return &Refusal{Identity: id, Op: op, Key: key, Why: why} }
	switch {
	case id.machine == "":
		return refuse("no agent is asking")
	case r == nil:
		return refuse("agents cannot use such a key")
	case op == Get && old == nil:
		return nil
	}

	rule := r.rule(op)
	if rule == nil {
		return refuse("no agent does that; " + r.why)
	}
	if op == Put || op == Lease {
		if size := len(new); size > r.max {
			return refuse(fmt.Sprintf("its value has %d bytes, at most %d are possible", size, r.max))
		}
		if !r.raw && !isPlain(new, r.record) {
			return refuse("its value names a member twice, which readers take for different values")
		}
		if !r.shape(new) {
			return refuse("its value is no such record")
		}
	}

	a := &ask{Placement: p, me: id.machine, vars: v, old: old, new: new}
	allowed := rule(a)
	if p.err != nil {
		return fmt.Errorf("cannot tell whether %s may %s %q: %w", id, op, key, p.err)
	}
	if !allowed {
		return refuse(r.why)
	}

	return nil
}

// MayWatchPrefix is [May] for a watch of all keys with the prefix. Agents watch prefixes that end with a slash
// only: others match the keys of names which have theirs as a beginning.
func MayWatchPrefix(id Identity, p *Placement, prefix string) error {
	if !id.operator && !strings.HasSuffix(prefix, "/") {
		return &Refusal{Identity: id, Op: Watch, Key: prefix, Why: "a prefix that agents watch ends with a slash"}
	}
	return May(id, p, Watch, prefix, nil, nil)
}

// Write is one operation of a commit.
type Write struct {
	Key    string
	Value  []byte
	Delete bool
	Leased bool // the value is put under a lease
	Quiet  bool // watchers need not be told
}

// Op returns which operation the write is.
func (w Write) Op() Op {
	switch {
	case w.Delete:
		return Delete
	case w.Leased:
		return Lease
	}
	return Put
}

// MayWrite is [May] for one of the writes of a commit, with all of them known to the rules: a record and the list
// that names it come together. The value before is read from the placement.
func MayWrite(id Identity, p *Placement, w Write, commit []Write) error {
	if id.operator {
		return nil
	}

	if r, _ := find(w.Key); w.Quiet && r != nil && !r.quiet {
		return &Refusal{Identity: id, Op: w.Op(), Key: w.Key, Why: "those who watch such a key are told of each change"}
	}

	p.writes = commit
	old := p.get(w.Key)
	switch {
	case p.err != nil:
		return p.err
	case w.Delete && old == nil:
		return nil // to delete what is not there does nothing
	}

	return May(id, p, w.Op(), w.Key, old, w.Value)
}

// MayCommit asks [MayWrite] about each of the writes of a commit. It returns the first refusal.
func MayCommit(id Identity, p *Placement, commit []Write) error {
	for _, w := range commit {
		if err := MayWrite(id, p, w, commit); err != nil {
			return err
		}
	}
	return nil
}

// Reader reads the state at one revision. It returns the same answer each time.
type Reader interface {
	// Get returns the value of a key; nil if it is absent.
	Get(key string) ([]byte, error)
	// List returns the values of all keys with the prefix.
	List(prefix string) (map[string][]byte, error)
}

// Placement is what the state says, at one revision, of machines, their units, and what these have to do
// with. It reads what a rule needs, once, and remembers which keys those were. It is for one goroutine.
type Placement struct {
	state  Reader
	values map[string][]byte
	lists  map[string]map[string][]byte
	writes []Write // of the commit that is asked about
	err    error   // the first of the reader, after which nothing is known
}

// NewPlacement returns a placement that has read nothing yet.
func NewPlacement(state Reader) *Placement {
	return &Placement{state: state, values: map[string][]byte{}, lists: map[string]map[string][]byte{}}
}

// Used returns the keys and prefixes that answers so far depend on, sorted: a commit that relies on these
// answers is made conditional on them.
func (p *Placement) Used() (keys, prefixes []string) {
	for key := range p.values {
		keys = append(keys, key)
	}
	for prefix := range p.lists {
		prefixes = append(prefixes, prefix)
	}

	slices.Sort(keys)
	slices.Sort(prefixes)
	return keys, prefixes
}

func (p *Placement) get(key string) []byte {
	if value, known := p.values[key]; known || p.err != nil {
		return value
	}

	value, err := p.state.Get(key)
	if err != nil {
		p.err = err
		return nil
	}
	p.values[key] = value
	return value
}

func (p *Placement) list(prefix string) map[string][]byte {
	if values, known := p.lists[prefix]; known || p.err != nil {
		return values
	}

	values, err := p.state.List(prefix)
	if err != nil {
		p.err = err
		return nil
	}
	p.lists[prefix] = values
	return values
}

// after returns what the key holds after the commit that is asked about.
func (p *Placement) after(key string) []byte {
	i := slices.IndexFunc(p.writes, func(w Write) bool { return w.Key == key })
	switch {
	case i < 0:
		return p.get(key)
	case p.writes[i].Delete:
		return nil
	}
	return p.writes[i].Value
}

// ask is one question to the table.
type ask struct {
	*Placement
	me       string // the machine that asks
	vars     vars   // what the key's pattern has found in it
	old, new []byte
}

// rule reports whether the one who asks may. A nil rule is for nobody but operators.
type rule func(a *ask) bool

// row says what agents may do with the keys of one pattern.
type row struct {
	pattern string
	why     string // agents may do this much, and no more; it ends a refusal
	max     int    // bytes of a value
	raw     bool   // the value is bytes, and no JSON
	record  bool   // the value is a record whose members some rule tells apart
	quiet   bool   // watchers need not be told: nobody watches such a key
	shape   shape  // of a value; nil: no agent writes one

	get, list, watch, put, del, lease rule

	segments []segment
}

func (r *row) rule(op Op) rule {
	switch op {
	case Get:
		return r.get
	case List:
		return r.list
	case Watch:
		return r.watch
	case Put:
		return r.put
	case Delete:
		return r.del
	case Lease:
		return r.lease
	}
	return nil
}

// maxKey bounds a key, in bytes. It has several names of at most 255.
const maxKey = 2 << 10

// find returns the row of a key, with what its pattern has found; nil if it has none.
// A key with anything but printable ASCII has no row: no backup can have one.
func find(key string) (*row, vars) {
	if len(key) > maxKey || strings.ContainsFunc(key, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return nil, nil
	}

	parts := strings.Split(key, "/")
	for _, r := range rows() {
		if first := r.segments[0]; first.name == "" && first.literal != parts[0] {
			continue
		}
		if v, ok := match(r.segments, parts); ok {
			return r, v
		}
	}
	return nil, nil
}

// Right is one operation on the keys of one pattern.
type Right struct {
	Op      Op
	Pattern string
}

// RightOf returns the right that an operation on the key needs; false if no agent has such a right.
func RightOf(op Op, key string) (Right, bool) {
	r, _ := find(key)
	if r == nil || r.rule(op) == nil {
		return Right{}, false
	}
	return Right{op, r.pattern}, true
}

// Rights lists the rights that some agent has to some key, in the order of the table.
func Rights() (all []Right) {
	for _, r := range rows() {
		for _, op := range Ops() {
			if r.rule(op) != nil {
				all = append(all, Right{op, r.pattern})
			}
		}
	}
	return all
}
