package deliver

import (
	"crypto/tls"
	"net/http/httptrace"
	"sync"
	"time"

	"github.com/registrar-dev/registrar/internal/domain/webhook"
)

// trace measures the phases of an attempt. Its hooks may run after the attempt has ended (a
// dial that nothing waits for any more), hence the lock.
type trace struct {
	mu                  sync.Mutex
	peer                string
	dns, connect, tls   time.Duration
	firstByte           time.Duration
	dnsAt, connAt, tlAt time.Time
	connected           bool
}

func (t *trace) hooks(began time.Time) *httptrace.ClientTrace {
	locked := func(f func()) { t.mu.Lock(); defer t.mu.Unlock(); f() }
	return &httptrace.ClientTrace{
		DNSStart:          func(httptrace.DNSStartInfo) { locked(func() { t.dnsAt = time.Now() }) },
		DNSDone:           func(httptrace.DNSDoneInfo) { locked(func() { t.dns = time.Since(t.dnsAt) }) },
		ConnectStart:      func(_, addr string) { locked(func() { t.connAt, t.peer = time.Now(), addr }) },
		ConnectDone:       func(_, _ string, _ error) { locked(func() { t.connect = time.Since(t.connAt) }) },
		TLSHandshakeStart: func() { locked(func() { t.tlAt = time.Now() }) },
		TLSHandshakeDone:  func(tls.ConnectionState, error) { locked(func() { t.tls = time.Since(t.tlAt) }) },
		GotConn: func(info httptrace.GotConnInfo) {
			locked(func() { t.peer, t.connected = info.Conn.RemoteAddr().String(), true })
		},
		GotFirstResponseByte: func() { locked(func() { t.firstByte = time.Since(began) }) },
	}
}

// stalled names what an attempt was waiting for when its time was over; status is the
// response's, 0 when there was none.
func (t *trace) stalled(status int) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case status != 0:
		return "response_timeout"
	case !t.connected && !t.connAt.IsZero() && t.tlAt.IsZero():
		return "connect_timeout"
	case !t.connected && !t.dnsAt.IsZero() && t.connAt.IsZero():
		return "dns_failed"
	}
	return "timeout"
}

func (t *trace) into(o *webhook.Outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o.Peer = t.peer
	o.Timing = webhook.Timing{DNS: t.dns, Connect: t.connect, TLS: t.tls, FirstByte: t.firstByte}
}
