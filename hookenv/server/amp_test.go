package server_test

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/hookenv/amp"
	"bijou/hookenv/hookapi"
	"bijou/testscripts/conformance/hookapitest"
)

// testTimeout limits the wait for events that should happen immediately.
const testTimeout = time.Minute

// leaveSocket creates the files that a killed server leaves.
func leaveSocket(t *testing.T, path string) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
}

// peer is any AMP client.
type peer struct {
	testing.TB
	conn    net.Conn
	decoder amp.Decoder
}

func connect(t testing.TB, path string) *peer {
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(testTimeout)); err != nil {
		t.Fatal(err)
	}
	return &peer{TB: t, conn: conn, decoder: amp.Decoder{Limit: 1 << 26}}
}

func (p *peer) send(pairs ...string) {
	p.Helper()
	var box []byte
	for i := 0; i < len(pairs); i += 2 {
		box = amp.Append(box, pairs[i], pairs[i+1])
	}
	if _, err := p.conn.Write(amp.End(box)); err != nil {
		p.Fatal(err)
	}
}

// receive returns the next box. It returns nil if the server has closed the connection.
func (p *peer) receive() amp.Box {
	p.Helper()
	chunk := make([]byte, 4096)
	for {
		box, err := p.decoder.Next()
		if err != nil {
			p.Fatal(err)
		}
		if box != nil {
			return box
		}
		n, err := p.conn.Read(chunk)
		p.decoder.Feed(chunk[:n])
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			p.Fatal("no answer, and the connection is not closed either")
		}
		if n == 0 && err != nil {
			return nil
		}
	}
}

func (p *peer) call(command string, pairs ...string) amp.Box {
	p.Helper()
	p.send(append([]string{"_command", command, "_ask", "7"}, pairs...)...)
	return p.receive()
}

// inHook starts the db-relation-changed hook of wordpress/0 in dialect d.
func inHook(t testing.TB, d hookapi.Dialect) (*hookapitest.Memory, hookapitest.Running) {
	m := hookapitest.NewMemory(t, hookapitest.Standard())
	r := m.Start(hookapi.Facts{
		Unit: "wordpress/0", Service: "wordpress", Hook: "db-relation-changed", Dialect: d,
		Relation: 0, RemoteUnit: "mysql/0", RemoteService: "mysql", Members: []string{"mysql/0", "mysql/1"},
	})
	t.Cleanup(r.Abort)
	return m, r
}

func TestPythonJujuCommands(t *testing.T) {
	_, r := inHook(t, hookapi.Classic)
	s := start(t)
	id := register(s, r)
	long := strings.Repeat("x", 70000)
	ok := func(pairs ...string) amp.Box {
		box := amp.Box{"_answer": "7"}
		for i := 0; i < len(pairs); i += 2 {
			box[pairs[i]] = pairs[i+1]
		}
		return box
	}
	fails := func(code, text string) amp.Box {
		return amp.Box{"_error": "7", "_error_code": code, "_error_description": text}
	}
	for _, tt := range []struct {
		name, command string
		pairs         []string
		want          amp.Box
	}{
		{"get", "get", []string{"unit_name", "mysql/0", "setting_name", "user"}, ok("value", "root")},
		{"get in another relation", "get", []string{"unit_name", "haproxy/0", "setting_name", "private-address", "relation_id", "relation-1"}, ok("value", "10.0.3.20")},
		{"get of no key", "get", []string{"unit_name", "mysql/0", "setting_name", "nope"}, fails("KEY_ERROR", "no such setting")},
		{"get of an unknown unit", "get", []string{"unit_name", "foo/9", "setting_name", "user"}, fails("BAD_REQUEST", "unknown unit foo/9")},
		{"get of no unit", "get", []string{"unit_name", "", "setting_name", "user"}, fails("BAD_REQUEST", `invalid unit name ""`)},
		{"get without a name", "get", []string{"unit_name", "mysql/0"}, fails("BAD_REQUEST", "get needs setting_name")},
		{"get in no relation", "get", []string{"unit_name", "mysql/0", "setting_name", "a", "relation_id", "9"}, fails("BAD_REQUEST", "Relation not found")},
		{"set", "set", []string{"unit_name", "wordpress/0", "json_blob", `{"a":"1","n":1.50,"t":true,"private-address":null}`}, ok("ok", "True")},
		{"get what was set", "get", []string{"unit_name", "wordpress/0", "setting_name", "n"}, ok("value", "1.50")},
		{"get what was deleted", "get", []string{"unit_name", "wordpress/0", "setting_name", "private-address"}, fails("KEY_ERROR", "no such setting")},
		{"set a long one", "set", []string{"unit_name", "wordpress/0", "json_blob", `{"long":"` + long + `"}`}, ok("ok", "True")},
		{"get a long one", "get", []string{"unit_name", "wordpress/0", "setting_name", "long"}, ok("value", long[:65535], "value.1", long[65535:])},
		{"set nonsense", "set", []string{"unit_name", "wordpress/0", "json_blob", `{"a":`}, fails("BAD_REQUEST", "cannot read json_blob: unexpected EOF")},
		{"set no dictionary", "set", []string{"unit_name", "wordpress/0", "json_blob", `[1]`}, fails("BAD_REQUEST", "cannot read json_blob: the value is not a dictionary")},
		{"set nothing", "set", []string{"unit_name", "wordpress/0", "json_blob", `null`}, fails("BAD_REQUEST", "cannot read json_blob: the value is not a dictionary")},
		{"set two dictionaries", "set", []string{"unit_name", "wordpress/0", "json_blob", `{}{}`}, fails("BAD_REQUEST", "cannot read json_blob: more than one value")},
		{"set a list", "set", []string{"unit_name", "wordpress/0", "json_blob", `{"a":[]}`}, ok("ok", "True")},
		{"not UTF-8", "get", []string{"unit_name", "mysql/\xff", "setting_name", "a"}, fails("BAD_REQUEST", "unit_name is not UTF-8")},
		{"a relation not UTF-8", "get", []string{"unit_name", "mysql/0", "setting_name", "a", "relation_id", "\xff"}, fails("BAD_REQUEST", "relation_id is not UTF-8")},
		{"set half a character", "set", []string{"unit_name", "wordpress/0", "json_blob", `{"a":"\udcff"}`}, fails("BAD_REQUEST", "settings can hold only UTF-8 text without NUL bytes; encode other data first, for example with base64")},
		{"list_relations", "list_relations", nil, ok("relations", "relation-0 relation-1 relation-2", "members", "mysql/0 mysql/1")},
		{"flush", "flush", nil, fails("RESERVED", "flush is reserved")},
		{"sync", "sync", nil, fails("RESERVED", "sync is reserved")},
		{"wait", "wait", []string{"keyname", "k"}, fails("RESERVED", "wait is reserved")},
		{"nonsense", "frobnicate", nil, fails("BAD_REQUEST", `unknown command "frobnicate"`)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := connect(t, s.Path()).call(tt.command, append(tt.pairs, "client_id", id)...)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestSeedSetOfAnotherUnit(t *testing.T) {
	for dialect, want := range map[hookapi.Dialect]string{hookapi.Classic: "", hookapi.Modern: "BAD_REQUEST"} {
		m, r := inHook(t, dialect)
		s := start(t)
		got := connect(t, s.Path()).call("set", "client_id", register(s, r), "unit_name", "mysql/0", "json_blob", `{"a":"1"}`)
		if got["_error_code"] != want {
			t.Errorf("%s: got %v, want error code %q", dialect, got, want)
		}
		if log := strings.Join(m.Lines(), "\n"); dialect == hookapi.Classic && log != "INFO wordpress/0 changed settings of mysql/0 in relation-0" {
			t.Errorf("logged %q", log)
		}
	}
}

// TestSeedReach checks that Python Juju's commands have the same access as the tools, and so no access to
// relations of other services.
func TestSeedReach(t *testing.T) {
	for dialect, want := range map[hookapi.Dialect]string{
		hookapi.Classic: "Relation not found",
		hookapi.Modern:  `invalid value "3" for option relation_id: relation not found`,
	} {
		_, r := inHook(t, dialect)
		s := start(t)
		id := register(s, r)

		for command, pairs := range map[string][]string{
			"get": {"client_id", id, "unit_name", "backup/0", "relation_id", "3", "setting_name", "path"},
			"set": {"client_id", id, "unit_name", "wordpress/0", "relation_id", "3", "json_blob", `{"a":"1"}`},
		} {
			got := connect(t, s.Path()).call(command, pairs...)
			refused := amp.Box{"_error": "7", "_error_code": "BAD_REQUEST", "_error_description": want}
			if diff := cmp.Diff(refused, got); diff != "" {
				t.Errorf("%s, %s: (-want +got)\n%s", dialect, command, diff)
			}
		}
	}

	_, r := inHook(t, hookapi.Classic)
	s := start(t)
	got := connect(t, s.Path()).call("set", "client_id", register(s, r), "unit_name", "backup/0", "relation_id", "clients", "json_blob", `{"a":"1"}`)
	if got["_error_description"] != "Relation not found" {
		t.Errorf("set of a unit that shares no relation, by its own name of one: got %v", got)
	}
}

func TestSeveralCommandsOnOneConnection(t *testing.T) {
	_, r := inHook(t, hookapi.Modern)
	s := start(t)
	id := register(s, r)
	p := connect(t, s.Path())
	for range 3 {
		if got := p.call("get", "client_id", id, "unit_name", "mysql/0", "setting_name", "user"); got["value"] != "root" {
			t.Errorf("got %v", got)
		}
	}
}

func TestUnknownClient(t *testing.T) {
	_, r := inHook(t, hookapi.Modern)
	s := start(t)
	id := register(s, r)
	s.Unregister(id)
	for _, unknown := range []string{id, "", "nobody"} {
		got := connect(t, s.Path()).call("list_relations", "client_id", unknown)
		if got["_error_code"] != "UNKNOWN_CLIENT" {
			t.Errorf("client id %q: got %v", unknown, got)
		}
	}
}

func TestBadClientsAreCutOffAlone(t *testing.T) {
	_, r := inHook(t, hookapi.Modern)
	s := start(t)
	id := register(s, r)
	good := connect(t, s.Path())
	for name, wire := range map[string]string{
		"nonsense":          "GET / HTTP/1.1\r\n\r\n",
		"no command":        "\x00\x01a\x00\x01b\x00\x00",
		"an empty box":      "\x00\x00",
		"a key twice":       "\x00\x01a\x00\x01b\x00\x01a\x00\x01b\x00\x00",
		"a long key":        "\x01\x00",
		"a command unasked": "\x00\x08_command\x00\x04sync\x00\x00",
	} {
		t.Run(name, func(t *testing.T) {
			bad := connect(t, s.Path())
			if _, err := io.WriteString(bad.conn, wire); err != nil {
				t.Fatal(err)
			}
			if box := bad.receive(); box != nil {
				t.Errorf("got an answer: %v", box)
			}
			if got := good.call("get", "client_id", id, "unit_name", "mysql/0", "setting_name", "user"); got["value"] != "root" {
				t.Errorf("another client was disturbed: %v", got)
			}
		})
	}
}
