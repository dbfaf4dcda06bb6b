"""Trees of lxml: built, queried, transformed and validated; merged from all ranks."""

from __future__ import annotations

from lxml import etree, html
from mpi4py import MPI

comm = MPI.COMM_WORLD
root = etree.Element("job", rank=str(comm.rank))
for k in range(4 + comm.rank):
    step = etree.SubElement(root, "step", name=f"s{k}", seconds=f"{k * 0.25 + comm.rank:.2f}")
    step.text = f"from {comm.rank} & <{k}>"
text = etree.tostring(root)
print(
    comm.rank, len(text), root.xpath("sum(step/@seconds)"), root.xpath("count(//step[@seconds>1])")
)

merged = etree.Element("jobs")
merged.extend(etree.fromstring(one) for one in comm.allgather(text))
print(comm.rank, merged.xpath("sum(//step/@seconds)"), [len(job) for job in merged])
transform = etree.XSLT(
    etree.XML(
        """<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
  <xsl:output method="text"/>
  <xsl:template match="/jobs"><xsl:for-each select="job/step[position()=last()]"><xsl:sort
    select="@seconds" data-type="number" order="descending"/><xsl:value-of
    select="concat(../@rank, ':', @name, '=', @seconds, ' ')"/></xsl:for-each></xsl:template>
</xsl:stylesheet>"""
    )
)
print(comm.rank, str(transform(merged)))
schema = etree.RelaxNG(
    etree.XML(
        """<element name="job" xmlns="http://relaxng.org/ns/structure/1.0"><attribute name="rank"/>
<oneOrMore><element name="step"><attribute name="name"/><attribute name="seconds"/><text/></element>
</oneOrMore></element>"""
    )
)
print(comm.rank, schema.validate(root), schema.validate(etree.Element("step")))
try:
    etree.fromstring(b"<open><not closed></open>")
except etree.XMLSyntaxError as error:
    print(comm.rank, error.lineno, error.msg)
events = [event for event, _ in etree.iterparse(__import__("io").BytesIO(text), ("start", "end"))]
print(comm.rank, events.count("start"), events.count("end"))
page = html.fromstring(f"<p>rank <b>{comm.rank}</b><a href=/x{comm.rank}>go</a><p>more<br>text")
page.make_links_absolute("http://example.org/")
print(comm.rank, [link[2] for link in page.iterlinks()], page.text_content())
