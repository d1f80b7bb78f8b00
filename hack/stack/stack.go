// Package stack runs a Registrar on one machine: PostgreSQL, Redis, an SMTP catcher, an HTTPS
// receiver and the programs. `make up` and `make test` are built from it, and so are end-to-end
// tests, which stop, kill and restart single parts.
//
// Every part is a small type with Start, Stop and, where it is a process, Kill. Start returns when
// the part is ready to be used. Whatever happens to the process that started them, the parts end
// with it.
package stack

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/registrar-dev/registrar/internal/kit/pg"
	"github.com/registrar-dev/registrar/internal/kit/seal"
)

// Ports are where the programs listen, all on 127.0.0.1.
type Ports struct {
	API, Platform                            int
	APIPrivate, WorkerPrivate, SenderPrivate int
}

// FreeProgramPorts finds ports for the programs; see FreePort.
func FreeProgramPorts(ctx context.Context) (Ports, error) {
	p, err := FreePorts(ctx, 5)
	if err != nil {
		return Ports{}, err
	}
	return Ports{API: p[0], Platform: p[1], APIPrivate: p[2], WorkerPrivate: p[3], SenderPrivate: p[4]}, nil
}

// Keyset reads the file with the key that secrets in the database are encrypted with. It makes one
// when there is none.
func Keyset(file string) ([]byte, error) {
	keyset, err := os.ReadFile(file)
	if !errors.Is(err, os.ErrNotExist) {
		return keyset, err
	}
	if keyset, err = seal.NewKeyset(); err != nil {
		return nil, err
	}
	return keyset, os.WriteFile(file, keyset, 0o600)
}

// Settings are what the programs are told about each other and about the parts they use.
type Settings struct {
	Bin    string // the folder of the built programs
	LogDir string // a file a program
	Ports  Ports
	Extra  []string // further NAME=value, stronger than all others

	DatabaseURL       string // the schema's owner's; see ProgramURL
	SandboxURL        string // "": there are no sandboxes
	RedisURL, SMTPURL string
	PlatformKey       string
	KeysetFile        string // SECRET_KEYSET_FILE
	CAFile            string // WEBHOOK_CA_FILE
}

// PublicURL is the base of every link that leaves in an answer or a mail.
func (s Settings) PublicURL() string { return httpURL(s.Ports.API) }

// PlatformURL is the base of the platform API.
func (s Settings) PlatformURL() string { return httpURL(s.Ports.Platform) + "/platform/v1/" }

// Platform calls the platform API; see Call.
func (s Settings) Platform(ctx context.Context, method, path string, body, result any) error {
	return Call(ctx, method, s.PlatformURL()+path, s.PlatformKey, body, result)
}

// ProgramURL is the database's address for a program, which has a role of its own with the rights
// that it needs: a right that is missing is found by whatever runs here.
func (s Settings) ProgramURL(program string) string { return RoleURL(s.DatabaseURL, program) }

// RolePrefix is that of the programs' roles, as in the databases of tests (pgtest.RolePrefix).
const RolePrefix = "registrar"

// RoleURL makes of the address of a database's owner the one of a program's role, which has the
// same password.
func RoleURL(owner, program string) string {
	u, err := url.Parse(owner)
	if err != nil {
		return owner // the program says what is wrong
	}
	role := pg.RoleOf(RolePrefix, program)
	if password, given := u.User.Password(); given {
		u.User = url.UserPassword(role, password)
	} else {
		u.User = url.User(role)
	}
	return u.String()
}

// environment is a program's whole configuration. They share one, but for their database role and
// PRIVATE_ADDR.
func (s Settings) environment(databaseURL string, privatePort int) []string {
	env := append(os.Environ(),
		"DATABASE_URL="+databaseURL,
		"SANDBOX_DATABASE_URL="+s.SandboxURL,
		"REDIS_URL="+s.RedisURL,
		"SMTP_URL="+s.SMTPURL,
		"MAIL_FROM=Registrar <no-reply@registrar.example>",
		"HTTP_ADDR="+hostPort(s.Ports.API),
		"PLATFORM_ADDR="+hostPort(s.Ports.Platform),
		"PRIVATE_ADDR="+hostPort(privatePort),
		"PUBLIC_URL="+s.PublicURL(),
		"PLATFORM_KEY="+s.PlatformKey,
		"SECRET_KEYSET_FILE="+s.KeysetFile,
		"SAFE_EXAM_BROWSER_AVAILABLE=true",
		// The receiver is on this machine, where a real site would never deliver to.
		"WEBHOOK_ALLOW_NETWORKS=127.0.0.0/8,::1/128",
		"WEBHOOK_ALLOW_HTTP=true",
		"WEBHOOK_CA_FILE="+s.CAFile,
	)
	return append(env, s.Extra...)
}

// APIServer, Worker and WebhookSender prepare the programs; StartReady starts one.
func (s Settings) APIServer() *Program     { return s.program("api-server", s.Ports.APIPrivate) }
func (s Settings) Worker() *Program        { return s.program("worker", s.Ports.WorkerPrivate) }
func (s Settings) WebhookSender() *Program { return s.program("webhook-sender", s.Ports.SenderPrivate) }

// Migrate prepares the program that brings the database's schema up to date and ends.
func (s Settings) Migrate() *Program {
	p := s.program("api-server", s.Ports.APIPrivate, "migrate")
	p.Name, p.LogFile = "api-server migrate", filepath.Join(s.LogDir, "migrate.log")
	p.Env = append(s.environment(s.DatabaseURL, s.Ports.APIPrivate), "DATABASE_ROLES="+RolePrefix)
	return p
}

func (s Settings) program(name string, privatePort int, args ...string) *Program {
	return NewProgram(Command{
		Name:    name,
		Path:    filepath.Join(s.Bin, name),
		Args:    args,
		Env:     s.environment(s.ProgramURL(name), privatePort),
		LogFile: filepath.Join(s.LogDir, name+".log"),
	})
}

// Run starts a program that ends by itself and waits until it has.
func Run(ctx context.Context, p *Program) error {
	if err := p.Start(); err != nil {
		return err
	}
	select {
	case <-p.Exited():
	case <-ctx.Done():
		return errors.Join(ctx.Err(), p.Stop())
	}
	if err := p.Err(); err != nil {
		return fmt.Errorf("%s: %w; its last lines:\n%s", p.Name, err, p.LogTail(20))
	}
	return nil
}

// StartReady starts a program and returns once its /readyz on the private port says 200, within a minute.
func StartReady(ctx context.Context, p *Program, privatePort int) error {
	return p.startUntil(ctx, time.Minute, func(ctx context.Context) error {
		_, err := Get(ctx, httpURL(privatePort)+"/readyz")
		return err
	})
}

// FreePort finds a port of 127.0.0.1 that nothing listens on, and that no process that asks here is
// given while this one lasts: what it is for may take a while to listen. It lies below the range
// from which systems take the ports of outgoing connections: a server that is stopped for a while
// and started again would otherwise find its port taken by one of them.
func FreePort(ctx context.Context) (int, error) {
	const lowest, highest = 20000, 32000
	for range 200 {
		port := lowest + rand.IntN(highest-lowest)
		if ReservePort(ctx, port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port found between %d and %d", lowest, highest)
}

// reserved are the UDP sockets that stand for the ports that were given. The system closes them with
// the process, however it ends.
var reserved struct {
	sync.Mutex
	sockets []net.PacketConn
}

// ReservePort takes a port for this process, as FreePort does, unless something listens on it or
// another process, or a call before, has it.
func ReservePort(ctx context.Context, port int) bool {
	if !PortFree(port) {
		return false
	}
	socket, err := new(net.ListenConfig).ListenPacket(ctx, "udp", hostPort(port))
	if err != nil {
		return false
	}
	reserved.Lock()
	defer reserved.Unlock()
	reserved.sockets = append(reserved.sockets, socket)
	return true
}

// FreePorts finds n different ports as FreePort does.
func FreePorts(ctx context.Context, n int) ([]int, error) {
	ports := make([]int, n)
	for i := range ports {
		var err error
		if ports[i], err = FreePort(ctx); err != nil {
			return nil, err
		}
	}
	return ports, nil
}

// UsualPorts are the given ports, and for each that is taken a free one: what a caller's environment
// says of a server is then the same each time, as go test wants that is to find its results again.
func UsualPorts(ctx context.Context, usual ...int) ([]int, error) {
	ports := make([]int, len(usual))
	for i, port := range usual {
		if ports[i] = port; ReservePort(ctx, port) {
			continue
		}
		var err error
		if ports[i], err = FreePort(ctx); err != nil {
			return nil, err
		}
	}
	return ports, nil
}

// PortFree reports whether a server could listen on that port of 127.0.0.1 now. It does not itself listen: a program that is
// being started just then has this process's sockets until it runs, and would hold the port.
func PortFree(port int) bool {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(socket) }()
	if err := unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return false
	}
	return unix.Bind(socket, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}) == nil
}

func hostPort(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
func httpURL(port int) string  { return "http://" + hostPort(port) }

func hashOf(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text)) // never fails
	return h.Sum64()
}
