package server

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"bijou/hookenv/amp"
	"bijou/testscripts/kit/await"
)

// startStrict returns a server with limits that a test can reach.
func startStrict(t *testing.T) *Server {
	return startWithLimits(t, limits{maxConns: 100, idleTimeout: time.Minute, maxBox: 4096, boxTimeout: 50 * time.Millisecond, firstBoxTimeout: 50 * time.Millisecond, writeTimeout: 50 * time.Millisecond})
}

func startWithLimits(t *testing.T, l limits) *Server {
	folder, err := os.MkdirTemp("", "bijou")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	s, err := listen(filepath.Join(folder, "s"), l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func dial(t *testing.T, s *Server) net.Conn {
	c, err := net.Dial("unix", s.Path())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(time.Minute))
	return c
}

// cutOff waits for the server to close a connection.
func cutOff(t *testing.T, c net.Conn) {
	t.Helper()
	_, err := io.Copy(io.Discard, c)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the client was not cut off")
	}
}

func TestSilentClientIsCutOff(t *testing.T) { cutOff(t, dial(t, startStrict(t))) }

// serveInTime serves a client in a synctest bubble, where waiting takes no real time.
func serveInTime(t *testing.T, l limits, test func(t *testing.T, c net.Conn)) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{limits: l, now: time.Now, log: slog.Default(), conns: map[net.Conn]time.Time{}, slots: make(chan bool, 1)}
		c, served := net.Pipe()
		c.SetDeadline(time.Now().Add(20 * time.Second))
		s.slots <- true
		s.addConn(served)
		s.goroutines.Go(func() { s.serve(served) })
		test(t, c)
		c.Close()
		s.goroutines.Wait()
	})
}

func TestDribblingClientIsCutOff(t *testing.T) {
	c := dial(t, startStrict(t))
	done := make(chan struct{})
	go func() {
		defer close(done)
		box := amp.Append(nil, "_command", string(make([]byte, 4000)))
		for i := 0; ; i = (i + 1) % len(box) { // until the server closes the connection
			if _, err := c.Write(box[i : i+1]); err != nil {
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	cutOff(t, c)
	c.Close()
	<-done
}

func TestOversizedBoxIsCutOff(t *testing.T) {
	c := dial(t, startStrict(t))
	c.Write(amp.End(amp.Append(nil, "_command", string(make([]byte, 5000)))))
	cutOff(t, c)
}

func TestIdleClientBetweenBoxesIsLeftAlone(t *testing.T) {
	l := limits{maxConns: 100, idleTimeout: time.Minute, maxBox: 4096, boxTimeout: 50 * time.Millisecond, firstBoxTimeout: time.Minute, writeTimeout: time.Minute}
	serveInTime(t, l, func(t *testing.T, c net.Conn) {
		ask := amp.End(amp.Append(amp.Append(amp.Append(nil, "_command", "sync"), "_ask", "1"), "client_id", "x"))
		answer := make([]byte, 1<<10)
		for range 2 {
			if _, err := c.Write(ask); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Read(answer); err != nil {
				t.Fatalf("cut off: %v", err)
			}
			time.Sleep(3 * l.boxTimeout)
		}
	})
}

func TestClientThatNeverReadsIsCutOff(t *testing.T) {
	s := startStrict(t)
	c := dial(t, s)
	ask := amp.End(amp.Append(amp.Append(nil, "_command", "nonsense"), "_ask", string(make([]byte, 3000))))
	for {
		if _, err := c.Write(ask); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("the client was not cut off")
			}
			return
		}
	}
}

func TestMoreClientsThanRoomWait(t *testing.T) {
	s := startWithLimits(t, limits{maxConns: 2, idleTimeout: time.Minute, maxBox: 4096, boxTimeout: time.Minute, firstBoxTimeout: time.Minute, writeTimeout: time.Minute})
	ask := amp.End(amp.Append(amp.Append(amp.Append(nil, "_command", "sync"), "_ask", "1"), "client_id", "x"))
	clients := make([]net.Conn, 6)
	for i := range clients {
		clients[i] = dial(t, s)
		if _, err := clients[i].Write(ask); err != nil {
			t.Fatal(err)
		}
	}
	for i, c := range clients {
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Errorf("client %d was not answered: %v", i, err)
		}
		s.mu.Lock()
		open := len(s.conns)
		s.mu.Unlock()
		if open > 2 {
			t.Errorf("%d connections are open", open)
		}
		c.Close()
	}
}

func TestCloseWithoutRoom(t *testing.T) {
	s := startWithLimits(t, limits{maxConns: 1, idleTimeout: time.Minute, maxBox: 4096, boxTimeout: time.Minute, firstBoxTimeout: time.Minute, writeTimeout: time.Minute})
	served, waiting := dial(t, s), dial(t, s)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	cutOff(t, served)
	waiting.Close()
}

// TestIdleClientsMakeRoom checks that other clients are served despite silent connections and connections
// that remain open after their answer.
func TestIdleClientsMakeRoom(t *testing.T) {
	s := startWithLimits(t, limits{maxConns: 4, idleTimeout: 20 * time.Millisecond, maxBox: 4096, boxTimeout: time.Minute, firstBoxTimeout: time.Minute, writeTimeout: time.Minute})
	ask := amp.End(amp.Append(amp.Append(amp.Append(nil, "_command", "sync"), "_ask", "1"), "client_id", "x"))
	for range 20 {
		dial(t, s)
		_, _ = dial(t, s).Write(ask) // the request may come too late
	}
	// If this process has to wait for the CPU, its last client may become idle before it sends its request.
	await.Until(t, await.Poll{Limit: time.Minute}, "one more client is answered", func() string {
		last := dial(t, s)
		_, err := last.Write(ask)
		if err == nil {
			_, err = last.Read(make([]byte, 1))
		}
		return await.Unless(err == nil, "%v", err)
	})
}

// TestUnreadWordsAreNotIdle checks that a client whose request the server has not read yet does not
// count as idle.
func TestUnreadWordsAreNotIdle(t *testing.T) {
	s := startWithLimits(t, limits{maxConns: 4, idleTimeout: time.Minute, maxBox: 4096, boxTimeout: time.Minute, firstBoxTimeout: time.Minute, writeTimeout: time.Minute})
	listener, err := net.Listen("unix", s.Path()+"2") // nobody accepts its connections
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	for text, want := range map[string]error{"x": nil, "": net.ErrClosed} {
		client, err := net.Dial("unix", s.Path()+"2")
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		served, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(client, text); err != nil {
			t.Fatal(err)
		}
		s.mu.Lock()
		s.conns[served] = time.Now().Add(-time.Hour)
		s.mu.Unlock()
		s.closeIdle()
		if _, err := served.Read(make([]byte, 1)); !errors.Is(err, want) {
			t.Errorf("of a client that has said %q: %v, want %v", text, err, want)
		}
	}
}
