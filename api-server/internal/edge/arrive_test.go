package edge

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/registrar-dev/registrar/api-server/internal/limit"
	"github.com/registrar-dev/registrar/internal/kit/check"
	"github.com/registrar-dev/registrar/internal/kit/fault"
)

// wire is a listener whose connections are in memory, so that time passes only when nothing else
// happens.
type wire struct {
	conns chan net.Conn
	done  chan struct{}
}

func (w *wire) Accept() (net.Conn, error) {
	select {
	case c := <-w.conns:
		return c, nil
	case <-w.done:
		return nil, net.ErrClosed
	}
}

func (w *wire) Close() error   { close(w.done); return nil }
func (w *wire) Addr() net.Addr { return &net.TCPAddr{} }

// from gives a connection an address of its own.
type from struct {
	net.Conn

	address string
}

func (f from) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(f.address))
}

// line is a server on a wire, with the same limits of time as the programs'.
type line struct {
	*bench

	wire *wire
}

func newLine(t *testing.T, o Options) *line {
	t.Helper()
	b := &bench{reg: prometheus.NewRegistry()}
	o.API, o.Metrics, o.Log = "test", NewMetrics(b.reg), slog.New(slog.NewJSONHandler(&b.log, nil))
	b.Mux = NewRouter(o)
	b.Post("/x", Handle(func(w http.ResponseWriter, r *http.Request) error {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		return JSON(w, http.StatusOK, len(text))
	}))
	l := &line{b, &wire{make(chan net.Conn), make(chan struct{})}}
	server := &http.Server{Handler: b, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: 60 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l.wire) }()
	t.Cleanup(func() {
		_ = server.Close()
		<-served
		<-time.After(time.Minute) // connections linger
	})
	return l
}

func (l *line) dial(t *testing.T, address string) net.Conn {
	t.Helper()
	near, far := net.Pipe()
	t.Cleanup(func() { _ = near.Close() })
	l.wire.conns <- from{far, address + ":5000"}
	return near
}

// begin sends a header that announces so many bytes, and text.
func (l *line) begin(t *testing.T, address string, length int, text string) net.Conn {
	t.Helper()
	c := l.dial(t, address)
	if _, err := fmt.Fprintf(c, "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", length, text); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return c
}

func status(t *testing.T, c net.Conn) (int, string) {
	t.Helper()
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	check.NoError(t, err, "the answer")
	return res.StatusCode, string(text)
}

func TestARequestTakesNoPlaceBeforeItsBodyIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t, Options{InFlight: 1})
		var slow []net.Conn
		for range 256 {
			slow = append(slow, l.begin(t, "192.0.2.1", 5, "abc"))
		}
		code, _ := status(t, l.begin(t, "192.0.2.1", 2, "ab"))
		check.Equal(t, "status beside 256 slow senders", code, 200, "it was refused")
		_, _ = io.WriteString(slow[7], "de")
		code, text := status(t, slow[7])
		check.Equal(t, "status of a slow one that came to its end", code, 200, "%s", text)
		check.Equal(t, "what its handler read", text, "5\n", "the body is not whole")
	})
}

func TestABodyHasToComeAtARate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t, Options{InFlight: 1})
		began := time.Now()
		code, text := status(t, l.begin(t, "192.0.2.1", 50, "abc"))
		check.Equal(t, "status", code, 408, "%s", text)
		check.Equal(t, "whole seconds that it took", int(time.Since(began).Seconds()), int(slowStart.Seconds()), "%s", text)

		// One that is slow, but not too slow, has longer than any request may be worked on.
		c := l.begin(t, "192.0.2.1", 1<<20, "")
		answer := make(chan int, 1)
		go func() { code, _ := status(t, c); answer <- code }()
		piece := strings.Repeat("x", slowestRate)
		began = time.Now()
		for range 1 << 20 / slowestRate {
			<-time.After(time.Second)
			if _, err := io.WriteString(c, piece); err != nil {
				t.Fatal(err)
			}
		}
		check.Equal(t, "status of a body at the slowest rate", <-answer, 200, "after %v", time.Since(began))
	})
}

// Whoever reads slowly or works for long is not taken for one who hung up.
func TestARequestIsWorkedOnForLongerThanItsBodyMayTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t, Options{InFlight: 1, Streams: func(r *http.Request) bool { return r.URL.Path == "/stream" }})
		work := Handle(func(w http.ResponseWriter, r *http.Request) error {
			select {
			case <-time.After(45 * time.Second):
				return JSON(w, http.StatusOK, "done")
			case <-r.Context().Done():
				return r.Context().Err()
			}
		})
		l.Post("/long", work)
		l.Get("/long", work)
		l.Post("/stream", func(w http.ResponseWriter, r *http.Request) {
			for range 2 { // forms read on after the end
				_, _ = io.Copy(io.Discard, r.Body)
			}
			work(w, r)
		})
		for _, request := range []string{
			"POST /long HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
			"GET /long HTTP/1.1\r\nHost: x\r\n\r\n",
			"POST /stream HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
		} {
			c := l.dial(t, "192.0.2.1")
			if _, err := io.WriteString(c, request); err != nil {
				t.Fatal(err)
			}
			code, text := status(t, c)
			check.Equal(t, "status", code, 200, "%.12s: %s", request, text)
		}
	})
}

func TestABodyOverTheLimitIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t, Options{InFlight: 1})
		l.Post("/json", Handle(func(w http.ResponseWriter, r *http.Request) error {
			_, err := ReadBody(w, r)
			return err
		}))
		long := strings.Repeat("x", maxBody<<20+1)
		for name, request := range map[string]string{
			"a length that is announced": fmt.Sprintf("POST /json HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(long), long),
			"a length that is not":       fmt.Sprintf("POST /json HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(long), long),
			"who asks first":             "POST /json HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 99999999\r\n\r\n",
		} {
			c := l.dial(t, "192.0.2.1")
			go func() { _, _ = io.WriteString(c, request) }()
			code, text := status(t, c)
			check.Equal(t, "status", code, 413, "%s: %s", name, text)
		}
	})
}

func TestWhoSendsMuchIsInNobodyElsesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bodies := &limit.Budget{All: 1 << 20, Each: 1 << 19}
		l := newLine(t, Options{InFlight: 1, Bodies: bodies})
		part := strings.Repeat("x", 200<<10)
		var greedy []net.Conn
		for i := range 4 { // each address has 256 KiB by now, and together they have all
			greedy = append(greedy, l.begin(t, fmt.Sprintf("192.0.2.%d", i+1), 1<<20, part))
		}
		code, text := status(t, l.begin(t, "198.51.100.1", 1000, strings.Repeat("x", 1000)))
		check.Equal(t, "status of one who sends little", code, 200, "%s", text)
		cut := 0
		for _, c := range greedy {
			_ = c.SetReadDeadline(time.Now().Add(time.Second))
			if res, err := http.ReadResponse(bufio.NewReader(c), nil); err == nil {
				cut++
				_ = res.Body.Close()
				check.Equal(t, "status of one who was cut off", res.StatusCode, 429, "the answer")
				check.Equal(t, "its Retry-After", res.Header.Get("Retry-After"), "2", "the answer")
			}
		}
		check.Equal(t, "how many were cut off", cut, 1, "no more than had to be")
		own := l.begin(t, "192.0.2.9", 1<<20, "")
		go func() { _, _ = io.WriteString(own, strings.Repeat("x", 1<<20)) }()
		code, text = status(t, own)
		check.Equal(t, "status of who wants more than a share", code, 429, "%s", text)
	})
}

func TestAHangUpIsNobodysFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t, Options{InFlight: 1})
		entered := make(chan struct{})
		for path, fail := range map[string]error{"/away": errors.New("connection lost"), "/busy": fault.New(fault.Unavailable, "overloaded", "later")} {
			l.Get(path, Handle(func(_ http.ResponseWriter, r *http.Request) error {
				entered <- struct{}{}
				<-r.Context().Done()
				return fail
			}))
		}
		l.Get("/own", func(w http.ResponseWriter, r *http.Request) {
			entered <- struct{}{}
			<-r.Context().Done()
			w.WriteHeader(http.StatusBadGateway)
		})
		for _, path := range []string{"/away", "/busy", "/own"} {
			l.log.Reset()
			c := l.dial(t, "192.0.2.1")
			if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path); err != nil {
				t.Fatal(err)
			}
			<-entered
			_ = c.Close()
			synctest.Wait()
			check.Equal(t, "status in the log", l.logLine(t)["status"], any(float64(StatusGone)), "%s", path)
		}
		l.log.Reset()
		_ = l.begin(t, "192.0.2.1", 50, "abc").Close()
		synctest.Wait()
		check.Equal(t, "status in the log", l.logLine(t)["status"], any(float64(StatusGone)), "in the middle of a body")
	})
}

func TestAPanicOfAClientThatLeftIsSeen(t *testing.T) {
	b := newBench(1)
	ctx, cancel := context.WithCancel(t.Context())
	b.Get("/x", func(http.ResponseWriter, *http.Request) { cancel(); panic("broken") })
	b.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "GET", "/x", nil))
	check.Equal(t, "status in the log", b.logLine(t)["status"], any(500.0), "a panic is a failure, whoever is there")
}

func TestAreasHavePlacesOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		l := newLine(t, Options{InFlight: 1, Areas: []Area{{"console", "/console"}, {"pages", "/"}}})
		l.Get("/console/x", func(http.ResponseWriter, *http.Request) { <-release })
		l.Get("/y", func(http.ResponseWriter, *http.Request) {})
		held := l.dial(t, "192.0.2.1")
		_, _ = io.WriteString(held, "GET /console/x HTTP/1.1\r\nHost: x\r\n\r\n")
		synctest.Wait()
		for path, want := range map[string]int{"/console/x": 503, "/y": 200} {
			c := l.dial(t, "192.0.2.1")
			_, _ = fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path)
			code, text := status(t, c)
			check.Equal(t, "status", code, want, "%s: %s", path, text)
		}
		close(release)
		code, _ := status(t, held)
		check.Equal(t, "status of the first", code, 200, "it held the place")
		l.wantRefusals(t, map[string]float64{"console": 1})
	})
}

// A stream has a limit of its own, and its sender the same rate.
func TestAStreamTakesNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(t, Options{InFlight: 1, Streams: func(r *http.Request) bool { return r.URL.Path == "/stream" }})
		l.Post("/stream", Handle(func(w http.ResponseWriter, r *http.Request) error {
			ArriveWithin(r, 45*time.Second)
			n, err := io.Copy(io.Discard, r.Body)
			if err != nil {
				return err
			}
			return JSON(w, http.StatusOK, n)
		}))
		stream := func(text string) net.Conn {
			c := l.dial(t, "192.0.2.1")
			_, _ = fmt.Fprintf(c, "POST /stream HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", 8<<20, text)
			synctest.Wait()
			return c
		}
		slow := stream("abc")
		code, _ := status(t, l.begin(t, "192.0.2.1", 2, "ab"))
		check.Equal(t, "status beside a stream", code, 200, "it was refused")
		code, text := status(t, slow)
		check.Equal(t, "status of a stream that is too slow", code, 408, "%s", text)

		long := stream("")
		began, piece := time.Now(), strings.Repeat("x", 2*slowestRate)
		go func() {
			for {
				<-time.After(time.Second)
				if _, err := io.WriteString(long, piece); err != nil {
					return
				}
			}
		}()
		code, text = status(t, long)
		check.Equal(t, "status of a stream that takes too long", code, 408, "%s", text)
		check.Equal(t, "whole seconds that it took", int(time.Since(began).Seconds()), 45, "%s", text)
		_ = long.Close()
	})
}

// Whatever a body is, its request has an answer, and gives back what it took.
func FuzzReceive(f *testing.F) {
	for _, seed := range []string{"Content-Length: 3\r\n\r\nabc", "Content-Length: 3\r\n\r\na", "Content-Length: -1\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
		"Transfer-Encoding: chunked\r\n\r\nzz\r\nabc", "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
		"Transfer-Encoding: chunked\r\n\r\n3;x=\"\r\nabc\r\n0\r\nContent-Length: 9\r\n\r\n", "Expect: 100-continue\r\nContent-Length: 99999999999\r\n\r\n", "\r\n",
		"X-Forwarded-For: \x7f, ,[::1\r\nContent-Length: 1\r\n\r\nx", "Content-Type: multipart/form-data; boundary=\"\"\r\nContent-Length: 4\r\n\r\n--\r\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, rest string) {
		bodies := &limit.Budget{All: 4 << 10, Each: 4 << 10}
		b := &bench{reg: prometheus.NewRegistry()}
		b.Mux = NewRouter(Options{API: "test", Metrics: NewMetrics(b.reg), Log: slog.New(slog.DiscardHandler), InFlight: 1, Bodies: bodies,
			Proxies: limit.Proxies{netip.MustParsePrefix("192.0.2.1/32")}})
		b.Post("/x", Handle(func(w http.ResponseWriter, r *http.Request) error {
			if _, err := ReadBody(w, r); err != nil {
				return err
			}
			return JSON(w, http.StatusOK, "read")
		}))
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("POST /x HTTP/1.1\r\nHost: x\r\n" + rest)))
		if err != nil {
			return // net/http refuses it
		}
		r.RemoteAddr = "192.0.2.1:1"
		w := httptest.NewRecorder()
		b.ServeHTTP(w, r.WithContext(t.Context()))
		if w.Code >= 500 {
			t.Errorf("%d %s for %q", w.Code, w.Body, rest)
		}
		whole := bodies.Open("198.51.100.1", func() {})
		defer whole.Close()
		check.True(t, "all memory is there again", whole.Take(bodies.All), "after %q", rest)
	})
}
