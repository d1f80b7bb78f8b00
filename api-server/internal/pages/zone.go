package pages

import (
	"net/http"
	"strings"
	"time"

	"github.com/registrar-dev/registrar/internal/kit/clock"
)

// The zone of a student's pages is the browser's own, as the script knows it. Who has chosen another has it in a cookie
// of that browser, and sees it without the script, too.
const (
	zoneCookie = "registrar_time_zone"
	zoneKept   = 365 * 24 * time.Hour
)

// chosenZone is the zone that somebody chose in the browser; nil for none.
func chosenZone(r *http.Request) *time.Location {
	c, err := r.Cookie(zoneCookie)
	if err != nil {
		return nil
	}
	zone, err := clock.Zone("zone", c.Value)
	if err != nil {
		return nil
	}
	return zone
}

type zonePage struct {
	Zone  string // that was chosen or typed; "": none
	Zones []string
	Fault string
}

func (s *Server) showZone(w http.ResponseWriter, r *http.Request) error {
	page := zonePage{Zones: someZones}
	if zone := chosenZone(r); zone != nil {
		page.Zone = zone.String()
	}
	return show(w, r, http.StatusOK, "time-zone.html", page)
}

func (s *Server) chooseZone(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	//nolint:gosec // it is Secure where the site is at https
	chosen := http.Cookie{Name: zoneCookie, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: s.Devices.HTTPS,
		MaxAge: int(zoneKept.Seconds())}
	note := "zone.is_chosen"
	if r.PostFormValue("browser") != "" {
		chosen.MaxAge, note = -1, "zone.is_own"
	} else {
		zone, err := clock.Zone("zone", strings.TrimSpace(r.PostFormValue("zone")))
		if err != nil {
			return show(w, r, http.StatusBadRequest, "time-zone.html", zonePage{Zone: r.PostFormValue("zone"), Zones: someZones, Fault: textsOf(r).T("zone.none")})
		}
		chosen.Value = zone.String()
	}
	http.SetCookie(w, &chosen)
	s.Sessions.Flash(r.Context(), textsOf(r).T(note))
	http.Redirect(w, r, home, http.StatusSeeOther)
	return nil
}

// someZones are offered; others can be typed.
var someZones = []string{
	"Africa/Addis_Ababa", "Africa/Cairo", "Africa/Casablanca", "Africa/Johannesburg", "Africa/Lagos", "Africa/Nairobi",
	"America/Bogota", "America/Chicago", "America/Denver", "America/Halifax", "America/Lima", "America/Los_Angeles", "America/Mexico_City", "America/New_York",
	"America/Phoenix", "America/Santiago", "America/Sao_Paulo", "America/St_Johns", "America/Toronto", "America/Vancouver",
	"Asia/Almaty", "Asia/Baghdad", "Asia/Baku", "Asia/Bangkok", "Asia/Colombo", "Asia/Dhaka", "Asia/Dubai", "Asia/Ho_Chi_Minh", "Asia/Hong_Kong", "Asia/Jakarta",
	"Asia/Jerusalem", "Asia/Kabul", "Asia/Karachi", "Asia/Kathmandu", "Asia/Kolkata", "Asia/Kuala_Lumpur", "Asia/Kuwait", "Asia/Manila", "Asia/Muscat", "Asia/Qatar",
	"Asia/Riyadh", "Asia/Seoul", "Asia/Shanghai", "Asia/Singapore", "Asia/Taipei", "Asia/Tashkent", "Asia/Tehran", "Asia/Tokyo", "Asia/Yangon",
	"Australia/Adelaide", "Australia/Brisbane", "Australia/Darwin", "Australia/Perth", "Australia/Sydney",
	"Europe/Amsterdam", "Europe/Athens", "Europe/Berlin", "Europe/Bucharest", "Europe/Dublin", "Europe/Helsinki", "Europe/Istanbul", "Europe/Kyiv", "Europe/Lisbon",
	"Europe/London", "Europe/Madrid", "Europe/Moscow", "Europe/Paris", "Europe/Rome", "Europe/Stockholm", "Europe/Vienna", "Europe/Warsaw", "Europe/Zurich",
	"Indian/Mauritius", "Pacific/Auckland", "Pacific/Fiji", "Pacific/Honolulu", "UTC",
}
