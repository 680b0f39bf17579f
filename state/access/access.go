// Package access decides who can read and write the keys of an environment. Operators can use all keys. The
// agents of a machine can use the keys that their units need.
//
// The package does no I/O itself. It reads the state only through a [Reader], at one revision. It does not
// enforce its decisions: the gateway between agents and the store does. The table in table.go has a row for
// each pattern of keys, in the order of package keys. Agents cannot use a key without a row.
package access

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Identity is an operator, or the agents of one machine. The zero Identity cannot do anything.
type Identity struct {
	operator bool
	machine  string
}

// Operator returns the identity of operators, provisioners and all other processes that open the store
// directly.
func Operator() Identity { return Identity{operator: true} }

// Agent returns the identity of a machine's agent and of its units' agents.
func Agent(machine string) Identity { return Identity{machine: machine} }

// String returns the name of the identity in messages.
func (i Identity) String() string {
	switch {
	case i.operator:
		return "an operator"
	case i.machine == "":
		return "an unidentified process"
	}
	return "machine " + i.machine
}

// Op is an operation on a key or a prefix.
type Op string

// The operations.
const (
	Get    Op = "get"
	List   Op = "list"  // lists a prefix that ends with a slash
	Watch  Op = "watch" // watches a key, or a prefix that ends with a slash
	Put    Op = "put"   // puts a key without a lease
	Delete Op = "delete"
	Lease  Op = "lease" // puts a key under a lease of the identity
)

// Ops lists the operations.
func Ops() []Op { return []Op{Get, List, Watch, Put, Delete, Lease} }

// ErrRefused is the kind of every [Refusal].
var ErrRefused = errors.New("not allowed")

// Refusal is the error for an operation that an identity has no right to do. It is an [ErrRefused].
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

// May returns nil if the identity can do the operation, in the state that the placement reads. Otherwise it
// returns a [Refusal]. If a rule cannot read the state, May returns an error that wraps the reader's error.
//
// For a Get, old is the current value, or nil if the key is absent. Agents can find out for every key with a
// row that the key is absent. For a Put, Lease or Delete, old is the value before the operation, and new the
// value after it.
//
// For a List or Watch, May ignores old and new. The caller must filter the results, so that the identity sees
// only keys that it can Get. A watch also shows that a key was deleted. For such an event, the caller must
// call May again for the watch, since the rights may have changed after the watch began.
func May(id Identity, p *Placement, op Op, key string, old, new []byte) error {
	if id.operator {
		return nil
	}

	r, variables := find(key)
	refuse := func(why string) error { return &Refusal{Identity: id, Op: op, Key: key, Why: why} }
	switch {
	case id.machine == "":
		return refuse("the request does not come from an agent of a machine")
	case r == nil:
		return refuse("agents cannot use this key")
	case op == Get && old == nil:
		return nil
	}

	rule := r.rule(op)
	if rule == nil {
		return refuse("no agent can do this: " + r.why)
	}
	if op == Put || op == Lease {
		if size := len(new); size > r.max {
			return refuse(fmt.Sprintf("the value has %d bytes, but at most %d are allowed", size, r.max))
		}
		// A raw value is not JSON. The names of a record's own members must differ in more than case.
		if !r.raw && !hasDistinctMembers(new, r.record) {
			return refuse("an object in the value has the same member twice, so that readers could use different values")
		}
		if !r.shape(new) {
			return refuse("the value does not have the form that this key requires")
		}
	}

	a := &ask{Placement: p, me: id.machine, vars: variables, old: old, new: new}
	allowed := rule(a)

	// If the state could not be read, the rule's answer has no meaning.
	if p.err != nil {
		return fmt.Errorf("cannot determine whether %s can %s %q: %w", id, op, key, p.err)
	}
	if !allowed {
		return refuse(r.why)
	}

	return nil
}

// Show returns the part of a key's value that the identity can see. Most values have no hidden part, so Show
// returns them unchanged, as it does for an operator. The caller must first check with [May] that the identity can
// Get the key.
func Show(id Identity, key string, value []byte) []byte {
	if id.operator || value == nil {
		return value
	}
	if r, _ := find(key); r != nil && r.show != nil {
		return r.show(value)
	}
	return value
}

// MayWatchPrefix is [May] for a watch of all keys with the prefix. Agents can only watch prefixes that end
// with a slash. Without the slash, "units/a" would also match the keys of "units/ab".
func MayWatchPrefix(id Identity, p *Placement, prefix string) error {
	if !id.operator && !strings.HasSuffix(prefix, "/") {
		return &Refusal{Identity: id, Op: Watch, Key: prefix, Why: "agents can watch only a prefix that ends with a slash"}
	}
	return May(id, p, Watch, prefix, nil, nil)
}

// Write is one operation of a commit.
type Write struct {
	Key    string
	Value  []byte
	Delete bool
	Leased bool // the value is put under a lease
	Quiet  bool // watchers do not need the change
}

// Op returns the operation of the write.
func (w Write) Op() Op {
	switch {
	case w.Delete:
		return Delete
	case w.Leased:
		return Lease
	}
	return Put
}

// MayWrite is [May] for one of the writes of a commit. The rules see all writes of the commit, since some
// records must be written together with the list that names them. MayWrite reads the old value from the
// placement. It also refuses a quiet write of a key that other processes may watch. It allows every other deletion
// of an absent key.
func MayWrite(id Identity, p *Placement, w Write, commit []Write) error {
	if id.operator {
		return nil
	}

	r, _ := find(w.Key)
	mayBeWatched := r != nil && !r.quiet
	if w.Quiet && mayBeWatched {
		return &Refusal{Identity: id, Op: w.Op(), Key: w.Key, Why: "a change to this key cannot be hidden from watchers"}
	}

	p.writes = commit
	old := p.get(w.Key)
	switch {
	case p.err != nil:
		return p.err
	case w.Delete && old == nil:
		return nil // deleting an absent key changes nothing
	}

	value := w.Value
	if w.Delete {
		value = nil // even if the request has a value
	}
	return May(id, p, w.Op(), w.Key, old, value)
}

// MayCommit calls [MayWrite] for each write of a commit, and returns the first error.
func MayCommit(id Identity, p *Placement, commit []Write) error {
	for _, w := range commit {
		if err := MayWrite(id, p, w, commit); err != nil {
			return err
		}
	}
	return nil
}

// Reader reads the state at one revision. Repeated calls return the same result.
type Reader interface {
	// Get returns the value of a key, or nil if the key is absent.
	Get(key string) ([]byte, error)
	// List returns the values of all keys with the prefix.
	List(prefix string) (map[string][]byte, error)
}

// Placement reads the records that rules need: machines, their units, and related records. It reads each key
// once, at one revision, and remembers which keys it has read. Only one goroutine may use it.
type Placement struct {
	state  Reader
	values map[string][]byte
	passed map[string]bool // the keys that pass has read, without keeping their values
	lists  map[string]map[string][]byte
	writes []Write   // the writes of the current commit
	now    time.Time // the time that At has set; zero without At
	err    error     // the first error of the reader; after it, nothing is read
}

// NewPlacement returns a placement over the reader.
func NewPlacement(state Reader) *Placement {
	return &Placement{
		state: state, values: map[string][]byte{}, passed: map[string]bool{}, lists: map[string]map[string][]byte{},
	}
}

// At makes the rules compare the times in new values with now, the time of the process that enforces them. It returns
// the placement. Without At, rules accept all times.
func (p *Placement) At(now time.Time) *Placement {
	p.now = now
	return p
}

// Used returns the keys and prefixes that all decisions so far depend on, sorted. A commit that relies on the
// decisions must be conditional on them.
func (p *Placement) Used() (keys, prefixes []string) {
	for key := range p.values {
		keys = append(keys, key)
	}
	// A key can have been read both with pass and with get. List it only once.
	for key := range p.passed {
		if _, known := p.values[key]; !known {
			keys = append(keys, key)
		}
	}
	for prefix := range p.lists {
		prefixes = append(prefixes, prefix)
	}

	slices.Sort(keys)
	slices.Sort(prefixes)
	return keys, prefixes
}

// get returns the value of a key, or nil if the key is absent or the state cannot be read. It keeps the value.
func (p *Placement) get(key string) []byte {
	value, isNew := p.read(key)
	if isNew {
		p.values[key] = value
	}
	return value
}

// pass is like get, but keeps only the key, for Used, and not the value. It is for the chunks of blobs, which
// together need much memory.
func (p *Placement) pass(key string) []byte {
	value, isNew := p.read(key)
	if isNew {
		p.passed[key] = true
	}
	return value
}

// read returns the value of a key. It reads the state only if p does not keep the value. isNew reports whether
// this call has read the value from the state. read records the first error, and reads nothing more after it.
func (p *Placement) read(key string) (value []byte, isNew bool) {
	value, known := p.values[key]
	if known || p.err != nil {
		return value, false
	}

	value, err := p.state.Get(key)
	if err != nil {
		p.err = err
		return nil, false
	}
	return value, true
}

// list returns the values of all keys with the prefix, by key. It keeps the list. Like read, it records the first
// error, and from then on returns nil for a prefix whose list it has not kept.
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

// after returns the value of the key after the current commit.
func (p *Placement) after(key string) []byte { return p.afterBy(key, p.get) }

// afterBy returns the value that a key has after the commit, or nil if the key is then absent. It calls read for a key
// that the commit does not write.
func (p *Placement) afterBy(key string, read func(key string) []byte) []byte {
	i := slices.IndexFunc(p.writes, func(w Write) bool { return w.Key == key })
	switch {
	case i < 0:
		return read(key)
	case p.writes[i].Delete:
		return nil
	}
	return p.writes[i].Value
}

// ask is a request for one operation on one key.
type ask struct {
	*Placement
	me       string // the machine whose agents make the request
	vars     vars   // the parts of the key that match the pattern's variables; find has checked their forms
	old, new []byte
}

// rule reports whether the request is allowed. If a row does not have a rule for an operation, only operators
// can do it.
type rule func(a *ask) bool

// row has the rights of agents to the keys of one pattern.
type row struct {
	pattern string
	why     string // the reason for the limits of the rights, shown at the end of a refusal's message
	max     int    // the largest possible value, in bytes
	raw     bool   // values are bytes, not JSON
	record  bool   // values are records whose single members the rules read
	quiet   bool   // commits can hide changes from watchers, since nothing watches such keys
	shape   shape  // the shape of values; nil if no agent writes the keys

	get, list, watch, put, del, lease rule
	show                              func(value []byte) []byte // returns the part of a value that agents see; nil if they see all of it

	segments []segment
}

// rule returns the row's rule for an operation, or nil if no agent can do it.
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

// maxKey limits a key, in bytes. A key has several names of at most 255 bytes.
const maxKey = 2 << 10

// find returns the row of a key and the values of its pattern's variables. It returns nil if the key has no
// row. A key has no row if it has characters other than printable ASCII, since a backup cannot contain such a key.
// A key with a space, or with more than maxKey bytes, has no row either.
func find(key string) (*row, vars) {
	isForbidden := func(c rune) bool { return c <= ' ' || c > '~' }
	if len(key) > maxKey || strings.ContainsFunc(key, isForbidden) {
		return nil, nil
	}

	parts := strings.Split(key, "/")
	for _, r := range rows() {
		// Most rows differ from the key in the first part, which is cheap to compare.
		first := r.segments[0]
		isLiteral := first.name == ""
		if isLiteral && first.literal != parts[0] {
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

// RightOf returns the right that an operation on the key needs. It returns false if no agent can have such a
// right.
func RightOf(op Op, key string) (Right, bool) {
	r, _ := find(key)
	if r == nil || r.rule(op) == nil {
		return Right{}, false
	}
	return Right{op, r.pattern}, true
}

// Rights lists all rights that agents can have, in the order of the table.
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
