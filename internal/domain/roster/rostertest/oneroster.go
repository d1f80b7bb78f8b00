package rostertest

import (
	"archive/zip"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/text/encoding/unicode"
)

// Header lines as school systems write them: those of version 1.1, and those of 1.2, which has roles in a file of their own.
const (
	Users11      = "sourcedId,status,dateLastModified,enabledUser,orgSourcedIds,role,username,userIds,givenName,familyName,middleName,identifier,email,sms,phone,agentSourcedIds,grades,password\n"
	Users12      = "sourcedId,status,dateLastModified,enabledUser,username,userIds,givenName,familyName,middleName,identifier,email,sms,phone,agentSourcedIds,grades,password,userMasterIdentifier,resourceSourcedIds,preferredGivenName,preferredMiddleName,preferredFamilyName,primaryOrgSourcedId,pronouns\n"
	Roles12      = "sourcedId,status,dateLastModified,userSourcedId,roleType,role,beginDate,endDate,orgSourcedId,userProfileSourcedId\n"
	Classes11    = "sourcedId,status,dateLastModified,title,grades,courseSourcedId,classCode,classType,location,schoolSourcedId,termSourcedIds,subjects,subjectCodes,periods\n"
	Enrollments  = "sourcedId,status,dateLastModified,classSourcedId,schoolSourcedId,userSourcedId,role,primary,beginDate,endDate\n"
	orgs         = "sourcedId,status,dateLastModified,name,type,identifier,parentSourcedId\nd1,,,North District,district,,\ns1,,,North School,school,,d1\ns2,,,South School,school,,d1\n"
	sessions     = "sourcedId,status,dateLastModified,title,type,startDate,endDate,parentSourcedId,schoolYear\n"
	fall         = "t1,,,Fall,term,2026-08-01,2026-12-20,y1,2027\n"
	demographics = "sourcedId,status,dateLastModified,birthDate,sex\nu1,,,2012-04-02,female\n"
)

// Manifest is a manifest of the version that calls each of the files as it is told, as "users bulk"; all others are absent.
func Manifest(version string, files ...string) string {
	text := "propertyName,value\nmanifest.version,1.0\noneroster.version," + version + "\n"
	for _, file := range []string{"academicSessions", "categories", "classes", "classResources", "courses", "courseResources", "demographics",
		"enrollments", "lineItems", "orgs", "resources", "results", "roles", "userProfiles", "users"} {
		mode := "absent"
		for _, f := range files {
			if name, as, _ := strings.Cut(f, " "); name == file {
				mode = as
			}
		}
		text += "file." + file + "," + mode + "\n"
	}
	return text + "source.systemName,A school's system\nsource.systemCode,sis\n"
}

// Archive is a zip archive of the files, which are names and texts in turns.
func Archive(files ...string) []byte {
	var entries []entry
	for pair := range slices.Chunk(files, 2) {
		entries = append(entries, entry{name: pair[0], text: pair[1]})
	}
	return archive(entries...)
}

func oneRoster(version, files string, more ...string) []byte {
	return Archive(append([]string{"manifest.csv", Manifest(version, strings.Split(files, ", ")...)}, more...)...)
}

// ofTerms are a class of each list of terms and academicSessions.csv with the rows, which the manifest calls what it is told.
func ofTerms(said, rows string, terms ...string) []byte {
	classes := Classes11
	for i, list := range terms {
		classes += fmt.Sprintf("c%d,,,Math,05,k1,CODE-1,scheduled,Room 1,s1,%s,,,1\n", i+1, list)
	}
	return oneRoster("1.1", "users bulk, classes bulk, "+said, "users.csv", Users11+user11("u1", "", "true", "student", "ana", "ana@institute.org"),
		"classes.csv", classes, "academicSessions.csv", rows)
}

// user11 is a row of Users11, user12 one of Users12, role12 one of Roles12, place one of Enrollments, class one of Classes11.
func user11(id, status, enabled, role, username, email string) string {
	return id + "," + status + ",," + enabled + ",s1," + role + "," + username + ",{FED:" + id + "}," + "Ana,Lopez,,ID-" + id + "," + email + ",,,,05,\n"
}

func user12(id, status, email string) string {
	return id + "," + status + ",,true,ana,\"{LDAP:ana},{SIS:9}\",Ana,Lopez,,," + email + ",,,,05,,m-" + id + ",,Annie,,,s1,she\n"
}

func role12(user, status, role, end string) string {
	return "r-" + user + role + "," + status + ",," + user + ",primary," + role + ",2026-08-01," + end + ",s1,\n"
}

func class(id, status, title string) string {
	return id + "," + status + ",," + title + ",05,k1,CODE-1,scheduled,Room 1,s1,t1,,,1\n"
}

func place(class, user, status, role, end string) string {
	return "e-" + class + user + "," + status + ",," + class + ",s1," + user + "," + role + ",false,2026-08-01," + end + "\n"
}

// OneRoster are archives of OneRoster 1.1 and 1.2 in the shapes of real exports, with invented people, and hostile ones. They
// are read as additive on 2026-11-23.
func OneRoster() []File {
	const all = "users bulk, classes bulk, enrollments bulk, orgs bulk, academicSessions bulk, courses bulk"
	ana := user11("u1", "", "true", "student", "ana", "ana@institute.org")
	users, classes := Users11+ana, Classes11+class("c1", "", "Math")
	places := Enrollments + place("c1", "u1", "", "student", "")
	whole := oneRoster("1.1", all, "users.csv", users, "classes.csv", classes, "enrollments.csv", places, "orgs.csv", orgs, "academicSessions.csv", sessions+fall, "courses.csv", "sourcedId,title\nk1,Math\n")
	onlyUsers := func(text string) []byte { return oneRoster("1.1", "users bulk", "users.csv", text) }
	with := func(roster string) []byte {
		return oneRoster("1.1", "users bulk, classes bulk, enrollments bulk", "users.csv", users, "classes.csv", classes, "enrollments.csv", roster)
	}
	roles := func(people, roles string) []byte {
		return oneRoster("1.2", "users bulk, roles bulk", "users.csv", Users12+people, "roles.csv", Roles12+roles)
	}
	in := func(folder string) []byte {
		return Archive(folder+"manifest.csv", Manifest("1.1", "users bulk", "enrollments bulk"), folder+"users.csv", users, folder+"enrollments.csv", places)
	}
	return []File{
		// Whole exports
		{"1.1, bulk", whole, "1 | 1 classes=1 c1=2026-08-01/2026-12-20"},
		{"1.2, bulk", oneRoster("1.2", all+", roles bulk", "users.csv", Users12+user12("u1", "", "ana@institute.org"), "roles.csv", Roles12+role12("u1", "", "student", ""),
			"classes.csv", classes, "enrollments.csv", places, "orgs.csv", orgs), "1 | 1 classes=1"},
		{"1.1.1 by its name", oneRoster("1.1.1", "users bulk", "users.csv", users), "1"},
		{"1.2 that has its roles in users.csv", oneRoster("1.2", "users bulk, roles absent", "users.csv", users), "1"},
		{"status active in a bulk file", onlyUsers(Users11 + user11("u1", "active", "TRUE", "Student", "ana", "ana@institute.org")), "1"},
		{"people of several schools", onlyUsers(Users11 + ana + strings.Replace(user11("u2", "", "true", "student", "b", "b@c.de"), ",s1,", ",\"s1,s2\",", 1)), "2"},
		{"further files", oneRoster("1.1", "users bulk, demographics bulk", "users.csv", users, "demographics.csv", demographics, "results.csv", "sourcedId\nx\n", "README.txt", "hello",
			"students_extra.csv", "a,b\n1,2\n"), "1"},
		{"further columns", onlyUsers(strings.Replace(Users11, "\n", ",metadata.jp.kanaGivenName,ext_shoe_size\n", 1) + strings.Replace(ana, "\n", ",アナ,43\n", 1)), "1"},
		{"few columns, in another order", onlyUsers("email,role,familyName,givenName,sourcedId\nana@institute.org,student,Lopez,Ana,u1\n"), "1"},
		{"columns in other letters", onlyUsers("SOURCEDID,Role,givenname,FamilyName,eMail\nu1,student,Ana,Lopez,ana@institute.org\n"), "1"},
		{"a byte order mark in each file", Archive("manifest.csv", "\xef\xbb\xbf"+Manifest("1.1", "users bulk"), "users.csv", "\xef\xbb\xbf"+users), "1"},
		{"UTF-16", Archive("manifest.csv", string(utf16(unicode.LittleEndian, unicode.UseBOM, Manifest("1.1", "users bulk"))), "users.csv", string(utf16(unicode.LittleEndian, unicode.UseBOM, users))), "1"},
		{"Windows-1252", onlyUsers(string(latin1(strings.Replace(users, "Lopez", "López", 1)))), "1 2:encoding_assumed"},
		{"carriage returns and quotes everywhere", onlyUsers("\"sourcedId\",\"role\",\"givenName\",\"familyName\",\"email\"\r\n\"u1\",\"student\",\"Ana\",\"Lopez, Jr.\",\"ana@institute.org\"\r\n"), "1"},
		{"semicolons", oneRoster("1.1", "users bulk", "users.csv", "sourcedId;role;givenName;familyName;email\nu1;student;Ana;Lopez;ana@institute.org\n"), "1"},
		{"names of files in capitals", Archive("MANIFEST.CSV", Manifest("1.1", "users bulk"), "Users.csv", users), "1"},
		{"in a folder", in("export 2026/"), "1 | 1"},
		{"in a folder, with backslashes", in(`oneroster\`), "1 | 1"},
		{"in a folder, with what a Mac adds", Archive("__MACOSX/out/._manifest.csv", "x", "out/", "", "out/manifest.csv", Manifest("1.1", "users bulk"), "out/users.csv", users), "1"},
		{"a manifest that names no file", Archive("manifest.csv", "propertyName,value\nmanifest.version,1.0\n", "users.csv", users, "enrollments.csv", places), "1 | 1"},
		{"a manifest with full names of files", Archive("manifest.csv", "propertyName,value\nfile.users.csv,Bulk\n", "users.csv", users), "1"},
		{"a manifest with a comma in a name", Archive("manifest.csv", "propertyName,value\nsource.systemName,Schools, Inc.\nfile.users,bulk\n", "users.csv", users), "1"},

		// Ids and addresses
		{"ids of any form", onlyUsers(Users11 + user11("{3F2504E0-4F89-41D3-9A0C-0305E82C3301}", "", "", "student", "a", "a@b.de") + user11("AE4A6BB3", "", "", "student", "b", "b@c.de") +
			user11("stu:12/34.5", "", "", "student", "c", "c@d.ef") + user11("00012", "", "", "student", "d", "d@e.fg")), "4"},
		{"an address as the username", onlyUsers(Users11 + user11("u1", "", "true", "student", "ana@institute.org", "")), "1"},
		{"no address at all", onlyUsers(Users11 + user11("u1", "", "true", "student", "ana", "")), "0 2:missing_email"},
		{"no id", onlyUsers(Users11 + user11("", "", "true", "student", "ana", "a@b.de") + ana), "1 2:missing_external_id"},
		{"an id that is too long", onlyUsers(Users11 + user11(strings.Repeat("x", 256), "", "true", "student", "ana", "a@b.de")), "0 2:bad_row lost=1"},
		{"userIds as JSON", onlyUsers("sourcedId,role,userIds,email,givenName,familyName\nu1,student,\"[{\"\"type\"\":\"\"sisId\"\",\"\"identifier\"\":\"\"S1\"\"}]\",a@b.de,Ana,Lopez\n"), "1"},
		{"a formula as a name", onlyUsers("sourcedId,role,email,givenName,familyName\nu1,student,a@b.de,=1+1,Lopez\n"), "1 2:suspicious_value"},
		{"a link as a name", onlyUsers("sourcedId,role,email,givenName,familyName\nu1,student,a@b.de,Ana,see https://evil.test\n"), "0 2:bad_row"},
		{"a guardian's row too short", onlyUsers(Users11 + "u9,,,true,s1,guardian\n" + ana), "1 2:bad_row"},
		{"a row too short", onlyUsers(Users11 + "u9,,,true\n" + ana), "1 2:bad_row"},

		// Roles
		{"every role of 1.1", onlyUsers(Users11 + user11("u2", "", "", "administrator", "a", "a@b.de") + user11("u3", "", "", "aide", "b", "b@c.de") + user11("u4", "", "", "guardian", "c", "c@d.ef") +
			user11("u5", "", "", "parent", "d", "d@e.fg") + user11("u6", "", "", "proctor", "e", "e@f.gh") + user11("u7", "", "", "relative", "f", "f@g.hi") + user11("u8", "", "", "teacher", "g", "g@h.ij") + ana),
			"1 2:admin_role_not_granted 3:teacher_reported 6:teacher_reported 8:teacher_reported"},
		{"every role of 1.2", roles(user12("u1", "", "a@b.de")+user12("u2", "", "b@c.de")+user12("u3", "", "c@d.ef")+user12("u4", "", "d@e.fg")+user12("u5", "", "e@f.gh")+user12("u6", "", "f@g.hi"),
			role12("u1", "", "districtAdministrator", "")+role12("u2", "", "siteAdministrator", "")+role12("u3", "", "systemAdministrator", "")+role12("u4", "", "principal", "")+
				role12("u5", "", "counselor", "")+role12("u6", "", "student", "")), "1 2:admin_role_not_granted 3:admin_role_not_granted 4:admin_role_not_granted 5:admin_role_not_granted 6:teacher_reported"},
		{"a role of one's own", onlyUsers(Users11 + user11("u1", "", "", "ext:coach", "a", "a@b.de") + ana), "1 2:unknown_role"},
		{"an empty role", onlyUsers(Users11 + user11("u1", "", "", "", "a", "a@b.de") + user11("u2", "", "", "student", "b", "b@c.de")), "1 unsaid=1"},
		{"guardians alone", onlyUsers(Users11 + user11("u1", "", "", "guardian", "a", "a@b.de")), "0"},
		{"a student at one school and an aide at another", roles(user12("u1", "", "a@b.de"), role12("u1", "", "aide", "")+role12("u1", "", "student", "")), "1"},
		{"a teacher who is a parent", roles(user12("u1", "", "a@b.de"), role12("u1", "", "parent", "")+role12("u1", "", "teacher", "")), "0 2:teacher_reported"},
		{"a role that is over", roles(user12("u1", "", "a@b.de")+user12("u2", "", "b@c.de"), role12("u1", "", "student", "2026-11-22")+role12("u2", "", "student", "2026-11-23")), "1 unsaid=1"},
		{"a role that is deleted", roles(user12("u1", "", "a@b.de"), role12("u1", "tobedeleted", "student", "")), "0 unsaid=1"},
		{"no row of a role", roles(user12("u1", "", "a@b.de")+user12("u2", "", "b@c.de"), role12("u2", "", "student", "")), "1 unsaid=1"},
		{"bad rows of roles", roles(user12("u1", "", "a@b.de"), role12("", "", "student", "")+"r9\n"+role12("u1", "odd", "student", "")+role12("u1", "", "student", "")), "1 roles:2:bad_row roles:3:bad_row roles:4:bad_row"},
		{"neither roles nor a role", oneRoster("1.2", "users bulk", "users.csv", Users12+user12("u1", "", "a@b.de")), "invalid: missing_column"},
		{"an empty roles.csv and a role", oneRoster("1.2", "users bulk, roles bulk", "users.csv", users, "roles.csv", ""), "1"},
		{"roles without their columns", oneRoster("1.2", "users bulk, roles bulk", "users.csv", users, "roles.csv", "a,b\n1,2\n"), "invalid: missing_column"},

		// Who has left
		{"tobedeleted", onlyUsers(Users11 + user11("u1", "tobedeleted", "true", "student", "a", "") + ana), "1 2:withdrawn withdrawn=1"},
		{"tobedeleted with an id alone", oneRoster("1.2", "users delta", "users.csv", "sourcedId,status,dateLastModified,username,givenName,familyName,email\nu3,tobedeleted,2026-11-02T14:15:00.000Z,,,,\n"), "0 2:withdrawn withdrawn=1"},
		{"not enabled", onlyUsers(Users11 + user11("u2", "", "FALSE", "student", "a", "a@b.de") + ana), "1 2:withdrawn withdrawn=1"},
		{"inactive, as drafts have it", onlyUsers(Users11 + user11("u2", "inactive", "true", "student", "a", "a@b.de") + ana), "1 2:withdrawn withdrawn=1"},
		{"a status that is none", onlyUsers(Users11 + user11("u2", "perhaps", "true", "student", "a", "a@b.de") + ana), "1 2:bad_row"},
		{"enabledUser that says nothing", onlyUsers(Users11 + user11("u2", "", "maybe", "student", "a", "a@b.de") + ana), "1 2:bad_row"},

		// Classes and places
		{"teachers and others in classes", with(places + place("c1", "t1", "", "teacher", "") + place("c1", "p1", "", "guardian", "") + place("c1", "a1", "", "administrator", "") + place("c1", "x1", "", "robot", "")),
			"1 | 1 3:teacher_reported 5:teacher_reported 6:bad_row classes=1"},
		{"a place without a role", with(Enrollments + place("c1", "u1", "", "", "")), "1 | 1 classes=1"},
		{"places that have ended", with(Enrollments + place("c1", "u1", "", "student", "2026-11-22") + place("c1", "u2", "", "student", "2026-11-22T23:59:59Z") + place("c1", "u3", "", "student", "2026-11-23")), "1 | 1 classes=1 gone=2"},
		{"an end that cannot be read", with(Enrollments + place("c1", "u1", "", "student", "20.12.2025") + place("c1", "u2", "", "student", "2026-13-45")), "1 | 2 classes=1"},
		{"a deleted place", with(Enrollments + place("c1", "u1", "tobedeleted", "student", "")), "1 | 0 2:withdrawn classes=1 gone=1"},
		{"a deleted class", oneRoster("1.1", all, "users.csv", users, "classes.csv", Classes11+class("c1", "tobedeleted", "Math")+class("c2", "", "Art"), "enrollments.csv", places+place("c2", "u1", "", "student", "")), "1 | 1 classes=1 gone=1"},
		{"a class without a title", oneRoster("1.1", all, "users.csv", users, "classes.csv", Classes11+class("c1", "", "")), "1 | 0 classes=1"},
		{"classes with odd rows", oneRoster("1.1", all, "users.csv", users, "classes.csv", Classes11+class("", "", "Math")+class("c2", "", strings.Repeat("x", 201))+"c3\n"+class("c4", "odd", "Art")), "1 | 0 classes:2:bad_row classes:3:bad_row classes:4:bad_row classes:5:bad_row"},
		{"places with odd rows", with(Enrollments + place("", "u1", "", "student", "") + place("c1", "", "", "student", "") + place("c1", "u1", "odd", "student", "") + "e9\n"), "1 | 0 2:bad_row 3:missing_external_id 4:bad_row 5:bad_row classes=1"},
		{"empty optional files", oneRoster("1.1", all, "users.csv", users, "classes.csv", "", "enrollments.csv", "\n", "orgs.csv", "", "academicSessions.csv", ""), "1 | 0"},
		{"header lines alone beside people", oneRoster("1.1", all, "users.csv", users, "classes.csv", Classes11, "enrollments.csv", Enrollments), "1 | 0"},
		{"enrollments.csv without its columns", with("a,b\n1,2\n"), "invalid: missing_column"},

		// Terms
		{"a year, a semester, a term and a grading period", ofTerms("academicSessions bulk", sessions+"y1,active,,Year,schoolYear,2026-08-01,2027-07-31,,2027\ns1,,,S1,semester,2026-08-02,2027-01-31,y1,2027\n"+
			fall+"g1,,,Q1,gradingPeriod,2026-08-03,2026-10-10,t1,2027\n", "y1", "s1", "t1", "g1"),
			"1 | 0 classes=4 c1=2026-08-01/2027-07-31 c2=2026-08-02/2027-01-31 c3=2026-08-01/2026-12-20 c4=2026-08-03/2026-10-10"},
		{"several terms of a class", ofTerms("academicSessions bulk", sessions+"t2,,,Spring,term,2027-01-08,2027-06-30,,2027\n"+fall, "\"t1,t2\"", "\" t2 , t1,\""),
			"1 | 0 classes=2 c1=2026-08-01/2027-06-30 c2=2026-08-01/2027-06-30"},
		{"dates with times", ofTerms("academicSessions bulk", "sourcedId,startDate,endDate\n{T-1},2026-08-01T00:00:00.000Z,2026-12-20T00:00:00Z\n", "{T-1}"), "1 | 0 classes=1 c1=2026-08-01/2026-12-20"},
		{"a term that is not there", ofTerms("academicSessions bulk", sessions+fall, "t1", "t9", "\"t1,t9\""),
			"1 | 0 classes:3:unknown_session classes:4:unknown_session classes=3 c1=2026-08-01/2026-12-20"},
		{"a term that is deleted", ofTerms("academicSessions bulk", sessions+"t0,tobedeleted,,Old,term,2025-08-01,2025-12-20,,2026\n"+fall, "t0"), "1 | 0 classes:2:unknown_session classes=1"},
		{"a class without a term", ofTerms("academicSessions bulk", sessions+fall, ""), "1 | 0 classes=1"},
		{"terms with odd rows", ofTerms("academicSessions bulk", sessions+"t1,,,A,term,1.8.2026,20.12.2026,,\nt2,,,B,term,2026-12-20,2026-08-01,,\n,,,C,term,2026-08-01,2026-12-20,,\nt4\nt5,odd,,E,term,2026-08-01,2026-12-20,,\n", "t1", "t2", "t5"),
			"1 | 0 academicSessions:2:bad_row academicSessions:3:bad_row academicSessions:4:bad_row academicSessions:5:bad_row academicSessions:6:bad_row classes:4:unknown_session classes=3"},
		{"a header line of terms alone", ofTerms("academicSessions bulk", sessions, "1"), "1 | 0 classes=1"},
		{"terms that the manifest calls absent", ofTerms("academicSessions absent", sessions+fall, "t1"), "1 | 0 classes=1"},
		{"terms of which the manifest says nothing", ofTerms("academicSessions ", sessions+fall, "t1"), "1 | 0 classes=1 c1=2026-08-01/2026-12-20"},
		{"a delta of terms", ofTerms("academicSessions delta", sessions+fall, "t1", "t9", "\"t1,t9\""), "1 | 0 classes=3 c1=2026-08-01/2026-12-20"},
		{"terms without their columns", ofTerms("academicSessions bulk", "sourcedId,title\nt1,Fall\n", "t1"), "invalid: missing_column"},
		{"terms that are a bomb", ofTerms("academicSessions bulk", sessions+strings.Repeat(fall, 1<<17), "t1"), "invalid: compression_ratio"},

		// Deltas
		{"a delta", oneRoster("1.1", "users delta, enrollments delta", "users.csv", Users11+user11("u1", "active", "true", "student", "ana", "ana@institute.org"),
			"enrollments.csv", Enrollments+place("c1", "u1", "active", "student", "")), "1 | 1"},
		{"a delta of places alone", oneRoster("1.1", "users absent, enrollments delta", "enrollments.csv", places), "0 | 1"},
		{"a delta of names alone", oneRoster("1.2", "users delta", "users.csv", Users12+user12("u1", "active", "a@b.de")), "0 unsaid=1"},
		{"a delta in which nothing has changed", oneRoster("1.2", "users delta, roles delta, enrollments delta", "users.csv", Users12, "roles.csv", Roles12, "enrollments.csv", Enrollments), "0 | 0"},
		{"an empty delta", oneRoster("1.2", "users delta", "users.csv", ""), "0"},
		{"all absent", oneRoster("1.2", "orgs bulk", "orgs.csv", orgs), "0"},
		{"files that the manifest calls absent", oneRoster("1.1", "users bulk", "users.csv", users, "enrollments.csv", "not even CSV", "classes.csv", "\x00"), "1"},

		// Manifests and archives that are wrong
		{"no manifest", Archive("users.csv", users, "orgs.csv", orgs), "invalid: unknown_section"},
		{"an empty manifest", Archive("manifest.csv", "", "users.csv", users), "invalid: bad_manifest"},
		{"a manifest without its header line", Archive("manifest.csv", "file.users,bulk\n", "users.csv", users), "invalid: missing_column"},
		{"another standard", oneRoster("2.0", "users bulk", "users.csv", users), "invalid: unsupported_version"},
		{"a manifest with a word of its own", oneRoster("1.1", "users full", "users.csv", users), "invalid: bad_manifest"},
		{"a manifest that contradicts itself", Archive("manifest.csv", "propertyName,value\nfile.users,bulk\nfile.users,delta\n", "users.csv", users), "invalid: bad_manifest"},
		{"users.csv that was promised", oneRoster("1.1", "users bulk", "orgs.csv", orgs), "invalid: no_people_file"},
		{"an empty users.csv", oneRoster("1.1", "users bulk", "users.csv", ""), "invalid: empty_file"},
		{"users.csv without an id", onlyUsers("id,role\nu1,student\n"), "invalid: missing_column"},
		{"a column twice", onlyUsers("sourcedId,role,SourcedID\nu1,student,u2\n"), "invalid: duplicate_column"},
		{"users.csv twice", oneRoster("1.1", "users bulk", "users.csv", users, "USERS.csv", users), "invalid: duplicate_section"},
		{"two manifests", Archive("a/manifest.csv", Manifest("1.1", "users bulk"), "a/users.csv", users, "b/manifest.csv", Manifest("1.1", "users bulk"), "b/users.csv", users), "invalid: duplicate_section"},
		{"users.csv in another folder", Archive("manifest.csv", Manifest("1.1", "users bulk"), "data/users.csv", users), "invalid: no_people_file"},
		{"people.csv beside a manifest", Archive("manifest.csv", Manifest("1.1", "users bulk"), "people.csv", one), "invalid: unknown_section"},
		{"a path upwards", oneRoster("1.1", "users bulk", "users.csv", users, "../../x.csv", "x"), "invalid: unsafe_path"},
		{"an archive within", oneRoster("1.1", "users bulk", "users.csv", users, "more.zip", string(whole)), "invalid: nested_archive"},
		{"encrypted", patch(patch(whole, localHeader, 6, 1, 0), central, 8, 1, 0), "invalid: encrypted"},
		{"cut off", whole[:len(whole)-20], "invalid: archive_damaged"},
		{"a quote that never closes", onlyUsers(Users11 + "u1,,,true,s1,student,ana,,\"Ana,Lopez,,,a@b.de,,,,,\n" + ana), "invalid: unbalanced_quotes"},
		{"a manifest that is a bomb", archive(entry{name: "manifest.csv", text: "propertyName,value\n" + strings.Repeat("file.x,bulk\n", 1<<20)}, entry{name: "users.csv", text: users}), "invalid: compression_ratio"},
		{"roles that are a bomb", oneRoster("1.2", "users bulk, roles bulk", "users.csv", users, "roles.csv", Roles12+strings.Repeat(role12("u1", "", "student", ""), 1<<17)), "invalid: compression_ratio"},
		{"classes that are a bomb", oneRoster("1.1", all, "users.csv", users, "classes.csv", Classes11+strings.Repeat(class("c1", "", "Math"), 1<<17)), "invalid: compression_ratio"},
		{"stored, not packed", archive(entry{name: "manifest.csv", text: Manifest("1.1", "users bulk"), change: func(h *zip.FileHeader) { h.Method = zip.Store }}, entry{name: "users.csv", text: users}), "1"},
	}
}
