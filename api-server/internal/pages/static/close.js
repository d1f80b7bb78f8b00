// Lets the LMS close the window in which a registration has ended. There is nothing secret in it, and the LMS's pages may have any origin.
"use strict";

(window.opener || window.parent).postMessage({ subject: "org.imsglobal.lti.close" }, "*");
