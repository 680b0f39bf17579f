package dashboard

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// browser is one tab of chromium without a window.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu        sync.Mutex
	requests  []string // its requests
	complains []string // its output on the console
}

func openBrowser(t *testing.T) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		if strings.Contains(","+os.Getenv("BIJOU_TEST_REQUIRE")+",", ",chromium,") {
			t.Fatal(err)
		}
		t.Skip("skipped: chromium is not installed")
	}
	options := []chromedp.ExecAllocatorOption{chromedp.ExecPath(path), chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.UserDataDir(t.TempDir())}
	for _, flag := range []string{"disable-quic", "disable-background-networking", "disable-component-update", "disable-sync"} {
		options = append(options, chromedp.Flag(flag, true))
	}
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	b := &browser{t: t, ctx: ctx}
	b.do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
		if err == nil {
			_, err = chromedp.Call(ctx, log.Enable, cdp.Empty{})
		}
		return err
	}))
	if err := chromedp.Listen(ctx, b.note); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *browser) note(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	case *log.EventEntryAdded:
		b.complains = append(b.complains, e.Entry.Text+" "+e.Entry.URL)
	case *runtime.EventExceptionThrown:
		b.complains = append(b.complains, e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		b.complains = append(b.complains, fmt.Sprint(e.Args))
	}
}

// check checks that the page has sent requests only to base, and has printed nothing on the console.
func (b *browser) check(base string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.requests) < 5 {
		b.t.Errorf("%d requests were seen", len(b.requests))
	}
	for _, url := range b.requests {
		if !strings.HasPrefix(url, base) {
			b.t.Errorf("it has asked for %s", url)
		}
	}
	for _, text := range b.complains {
		b.t.Errorf("it complains: %s", text)
	}
}

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// await waits until a JavaScript expression is true.
func (b *browser) await(what, expression string) {
	b.t.Helper()
	_, err := chromedp.Run(b.ctx, chromedp.Poll[chromedp.Void](expression, chromedp.WithPollingTimeout(60*time.Second)))
	if err != nil {
		text, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string](`document.body.innerText`))
		b.t.Fatalf("%s: %s: %v\n%q\n%s", what, expression, err, b.complains, text)
	}
}

// evaluate returns the value of a JavaScript expression.
func evaluate[T any](b *browser, expression string) T {
	b.t.Helper()
	got, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return got
}

// idleShare returns the percentage of a core that the page's main thread takes while nothing changes. It waits
// for 20 seconds.
func (b *browser) idleShare() float64 {
	b.t.Helper()
	const window = 20 * time.Second
	before := b.threadTime()
	time.Sleep(window)
	return 100 * float64(b.threadTime()-before) / float64(window)
}

// threadTime returns how long the page's main thread has run. Other processes do not count.
func (b *browser) threadTime() time.Duration {
	b.t.Helper()
	var seconds float64
	b.do(chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, performance.Enable, performance.EnableParams{TimeDomain: "threadTicks"})
		if err != nil {
			return err
		}
		got, err := chromedp.Call(ctx, performance.GetMetrics, cdp.Empty{})
		if err != nil {
			return err
		}
		for _, m := range got.Metrics {
			if m.Name == "ThreadTime" {
				seconds = m.Value
			}
		}
		return nil
	}))
	if seconds == 0 {
		b.t.Fatal("the browser does not tell how long its thread has run")
	}
	return time.Duration(seconds * float64(time.Second))
}

// click clicks the element of a selector, as a reader would.
func (b *browser) click(selector string) {
	b.t.Helper()
	b.do(chromedp.ScrollIntoView(chromedp.CSS(selector)), chromedp.Click(chromedp.CSS(selector)))
}

// press presses a key.
func (b *browser) press(key string) { b.do(chromedp.KeyEvent(key)) }

// picture takes pictures of the page in both themes and at two widths, and checks that the page fits each
// width. It saves them in $BIJOU_TEST_PICTURES.
func (b *browser) picture(name string, full bool) {
	b.t.Helper()
	for _, width := range []int64{1280, 390} {
		for _, theme := range []string{"light", "dark"} {
			features := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}}
			b.do(chromedp.EmulateViewport(width, map[int64]int64{1280: 860, 390: 844}[width]), chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
				_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, features)
				return err
			}))
			if wide := evaluate[int64](b, `document.documentElement.scrollWidth`); wide > width {
				b.t.Errorf("%s: at %d pixels the page is %d wide", name, width, wide)
			}
			b.keepPicture(fmt.Sprintf("%s-%d-%s.png", name, width, theme), full)
		}
	}
	b.do(chromedp.EmulateViewport(1280, 860))
}

func (b *browser) keepPicture(name string, full bool) {
	b.t.Helper()
	folder := os.Getenv("BIJOU_TEST_PICTURES")
	if folder == "" {
		return
	}
	take := chromedp.CaptureScreenshot()
	if full {
		take = chromedp.FullScreenshot(100)
	}
	// The page draws the axis once a second.
	b.do(chromedp.Sleep(1200 * time.Millisecond))
	png, err := chromedp.Run(b.ctx, take)
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, name), png, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}
